import { AgstateError } from "../../core/errors.js";
import { bindingId, differences, slotOf } from "../../reviews/binding.js";
import type { AskedReview, ReviewDesk, ReviewRequest } from "../../reviews/desk.js";
import {
  REVIEW_RECORD_VERSION,
  type ReviewRecord,
  type ReviewStatus,
  type ReviewSubject,
  statusAt,
} from "../../reviews/record.js";
import type { Repository } from "../repository.js";
import type { StepBranch } from "../steps/handle.js";
import { recordRefusal } from "./refusals.js";
import { boundPaths } from "./state-at.js";
import { listReviews, type StoredReview, writeChange } from "./stored.js";

/** How often it is looked anew when others ask for the same at the same time. */
const ATTEMPTS = 20;

/** Asks for reviews of what is to happen on one branch. */
export class BranchDesk implements ReviewDesk {
  constructor(
    private readonly repository: Repository,
    private readonly branch: StepBranch,
  ) {}

  async ask(
    request: ReviewRequest,
    stillCounts: (record: ReviewRecord) => boolean,
  ): Promise<AskedReview> {
    const { now } = this.repository.context;
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const subject = await this.subjectOf(request);
      const prefix = `${request.kind}-${slotOf(request.kind, subject)}-`;
      const last = await this.last(prefix);
      if (last === undefined) {
        const opened = await this.open(`${prefix}1`, request, subject);
        if (opened !== null) return asked(opened, "open");
        continue;
      }
      const status = statusAt(last.record, now());
      const differ = differences(last.record.subject, subject);
      const waits = status === "open" || status === "approved";
      if (differ.length === 0 && status === "discarded") await this.refused(last, "was discarded");
      if (differ.length === 0 && (waits || status === "discarded")) return asked(last, status);
      if (differ.length === 0 && status === "used" && stillCounts(last.record)) {
        return asked(last, status);
      }
      if (!(await this.close(last, status, differ))) continue;
      const next = `${prefix}${Number(last.id.slice(prefix.length)) + 1}`;
      const opened = await this.open(next, request, subject);
      if (opened !== null) return asked(opened, "open");
    }
    throw new AgstateError(
      "REF_CONFLICT",
      `others ask for a review of ${request.subject.name} on ${this.branch.name} all the time; try again`,
      { branch: this.branch.name, attempts: ATTEMPTS },
    );
  }

  /** Lets the last review lapse that waits for what is not asked any more; nothing where none waits. */
  async withdraw(request: ReviewRequest, why: string): Promise<void> {
    const subject = await this.subjectOf(request);
    const last = await this.last(`${request.kind}-${slotOf(request.kind, subject)}-`);
    if (last === undefined) return;
    const status = statusAt(last.record, this.repository.context.now());
    if (status === "open" || status === "approved") await this.close(last, "lapsed", [], why);
  }

  async use({ id, record }: AskedReview): Promise<void> {
    const { repository, branch } = this;
    const at = repository.context.now();
    const review = (await listReviews(repository, id)).find((each) => each.id === id);
    const written =
      review === undefined || statusAt(review.record, at) !== "approved"
        ? null
        : await writeChange(
            repository,
            review,
            { ...record, status: "used", use: { number: null, at } },
            { actor: branch.author, says: `Use the approval of ${review.record.subject.name}` },
          );
    if (written === null) {
      await this.refused({ id, record }, "was used or changed");
      throw usedMeanwhile(id);
    }
  }

  async deny(request: ReviewRequest): Promise<AskedReview> {
    const { repository, branch } = this;
    const subject = await this.subjectOf(request);
    const id = `${request.kind}-${bindingId(request.kind, subject, (text) => repository.keys.digest(text))}`;
    const record = { ...this.requested(request, subject), status: "denied" } as const;
    const note = { actor: branch.author, says: `Deny ${shortly(subject.name)}` };
    const written = await writeChange(repository, { id }, record, note);
    // Where it is there already, it says the same: only that it happened again is new.
    if (written === null) await this.refused({ id, record }, "was denied before");
    return { id, status: "denied", record };
  }

  /** Has it on record that a step is kept from running, where no change of the review tells of it. */
  private refused(review: Pick<StoredReview, "id" | "record">, why: string): Promise<void> {
    return recordRefusal(this.repository, review, this.branch.author, why);
  }

  /** Records why a review counts no more; false when somebody else was faster. */
  private async close(
    review: StoredReview,
    status: ReviewStatus,
    differ: readonly string[],
    why = `what differs is ${shortly(differ.join(", "))}`,
  ): Promise<boolean> {
    const stands = review.record.status;
    if (stands !== "open" && stands !== "approved") return true;
    const closed = status === "expired" ? "expired" : "lapsed";
    const says =
      closed === "expired"
        ? `Expire the request for ${shortly(review.record.subject.name)}`
        : `Lapse: ${why}`;
    const note = { actor: this.branch.author, says };
    return (
      (await writeChange(this.repository, review, { ...review.record, status: closed }, note)) !==
      null
    );
  }

  private open(
    id: string,
    request: ReviewRequest,
    subject: ReviewSubject,
  ): Promise<StoredReview | null> {
    const note = {
      actor: this.branch.author,
      says: `Ask for a decision on ${shortly(subject.name)}`,
    };
    return writeChange(this.repository, { id }, this.requested(request, subject), note);
  }

  private requested(request: ReviewRequest, subject: ReviewSubject): ReviewRecord {
    const askedAt = this.repository.context.now();
    const { expiresAfterMs, kind, reason } = request;
    return {
      v: REVIEW_RECORD_VERSION,
      kind,
      status: "open",
      subject,
      askedBy: this.branch.author,
      askedAt,
      expiresAt: expiresAfterMs === undefined ? null : askedAt + expiresAfterMs,
      reason,
      decision: null,
      use: null,
    };
  }

  /** The last review of a slot: they are numbered from 1. */
  private async last(prefix: string): Promise<StoredReview | undefined> {
    const reviews = await listReviews(this.repository, prefix);
    const numberOf = ({ id }: StoredReview) => Number(id.slice(prefix.length));
    return reviews.sort((a, b) => numberOf(a) - numberOf(b)).at(-1);
  }

  /** What the request is bound to, by the branch as it is in the store now. */
  private async subjectOf({ subject, paths }: ReviewRequest): Promise<ReviewSubject> {
    const { repository, branch } = this;
    const { name, incarnation } = branch;
    await branch.flush();
    // The handle stays where it is: who else has moved the branch is for the step log to find out.
    const row = paths.length === 0 ? undefined : await repository.refs.row(branch.ref);
    const head =
      row === undefined || row.id === null
        ? branch.loadedHead
        : await repository.commits.read(row.id);
    return {
      ...subject,
      branch: name,
      incarnation,
      paths: await boundPaths(repository, head, paths),
    };
  }
}

function asked({ id, record }: StoredReview, status: ReviewStatus): AskedReview {
  return { id, status, record };
}

/** The error of an approval that was there, and is not any more when the step is about to begin. */
export function usedMeanwhile(review: string, differ: readonly string[] = []): AgstateError {
  const why =
    differ.length === 0 ? "was used or changed" : `lapsed, since ${differ.join(", ")} changed,`;
  return new AgstateError(
    "APPROVAL_NEEDED",
    `the approval ${review} ${why} before the step began; run again to ask for another one`,
    { review, differ },
  );
}

const SHOWN_MAX_LENGTH = 200;

/** A name as a log can tell it. */
function shortly(text: string): string {
  return JSON.stringify(
    text.length > SHOWN_MAX_LENGTH ? `${text.slice(0, SHOWN_MAX_LENGTH)}...` : text,
  ).slice(1, -1);
}
