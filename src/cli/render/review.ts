import type { ReviewStatus } from "../../reviews/record.js";
import type { ReviewInfo } from "../../store/reviews/review.js";
import { cutTo } from "./cut.js";
import { escapeLine } from "./escape.js";
import type { Paint } from "./paint.js";

const NAME_MAX_WIDTH = 40;

/** Where a review stands, in words. */
export function statusWords(paint: Paint, { status, kind }: ReviewInfo): string {
  if (kind === "in-doubt" && status === "approved") return paint.good("answered");
  return paintStatus(paint, status);
}

function paintStatus(paint: Paint, status: ReviewStatus): string {
  if (status === "open") return paint.bold("open");
  if (status === "approved" || status === "used") return paint.good(status);
  return status === "discarded" || status === "denied" ? paint.bad(status) : paint.dim(status);
}

/** What a review is about, on one line: a step's name and its branch. */
export function subjectWords({ subject }: ReviewInfo): string {
  return `${nameOf(subject.name)} on ${nameOf(subject.branch)}`;
}

function nameOf(text: string): string {
  return cutTo(escapeLine(text), NAME_MAX_WIDTH);
}
