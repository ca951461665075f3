import { AgstateError } from "../../core/errors.js";
import { isJsonObject } from "../../core/json.js";
import { checkText, quoteForMessage } from "../../core/names.js";

/** What a hand-off says to people. */
export interface HandoffSummary {
  /** What the work is for. */
  readonly goal: string;
  readonly done: readonly string[];
  readonly open: readonly string[];
  readonly decisions: readonly string[];
  /** What is to be done next. */
  readonly next: string;
}

/** A summary as it is given: a text is the goal, or a list of one. */
export type GivenSummary =
  | string
  | {
      readonly goal?: string;
      readonly done?: string | readonly string[];
      readonly open?: string | readonly string[];
      readonly decisions?: string | readonly string[];
      readonly next?: string;
    };

/** Longest text of a summary, and longest note, in bytes of UTF-8. */
export const SUMMARY_TEXT_MAX_BYTES = 64 * 1024;
const SUMMARY_ITEMS_MAX = 1000;

const TEXTS = ["goal", "next"] as const;
const LISTS = ["done", "open", "decisions"] as const;

/** @throws AgstateError `INVALID_VALUE`, `LIMIT_EXCEEDED` */
export function checkSummary(given: GivenSummary): HandoffSummary {
  const members: unknown = typeof given === "string" ? { goal: given } : given;
  if (!isJsonObject(members)) throw invalid("is neither a text nor an object");
  for (const key of Object.keys(members)) {
    if (!([...TEXTS, ...LISTS] as readonly string[]).includes(key)) {
      throw invalid(
        `has the member ${quoteForMessage(key)}; known are goal, done, open, decisions, next`,
      );
    }
  }
  const text = (key: (typeof TEXTS)[number]) => checked(key, members[key] ?? "");
  const list = (key: (typeof LISTS)[number]) => listOf(key, members[key] ?? []);
  const summary = {
    goal: text("goal"),
    done: list("done"),
    open: list("open"),
    decisions: list("decisions"),
    next: text("next"),
  };
  const says =
    summary.goal !== "" || summary.next !== "" || LISTS.some((key) => summary[key].length > 0);
  if (!says) throw invalid("is empty; say at least the goal, or what is to be done next");
  return summary;
}

function listOf(key: string, given: unknown): readonly string[] {
  const items: readonly unknown[] = Array.isArray(given) ? given : [given];
  if (items.length > SUMMARY_ITEMS_MAX) {
    throw new AgstateError(
      "LIMIT_EXCEEDED",
      `the summary's ${key} has ${items.length} items; at most ${SUMMARY_ITEMS_MAX} are allowed`,
      { field: key, count: items.length, limit: SUMMARY_ITEMS_MAX },
    );
  }
  return items.map((item) => checked(key, item)).filter((item) => item !== "");
}

function checked(key: string, given: unknown): string {
  return checkText(`the summary's ${key}`, given as string, SUMMARY_TEXT_MAX_BYTES).trim();
}

function invalid(problem: string): AgstateError {
  return new AgstateError("INVALID_VALUE", `the summary ${problem}`, { field: "summary" });
}
