import type { ReviewRecord, ReviewStatus, ReviewSubject } from "./record.js";

/** What a part asks a person for. */
export interface ReviewRequest {
  readonly kind: string;
  /** Without what the desk knows: the branch, and what stands at the paths. */
  readonly subject: Omit<ReviewSubject, "branch" | "incarnation" | "paths">;
  /** Paths of the state that the decision is bound to. */
  readonly paths: readonly string[];
  readonly expiresAfterMs?: number | undefined;
  readonly reason: string;
}

/** A review that is bound to just what was asked for, as it stands now. */
export interface AskedReview {
  readonly id: string;
  readonly status: ReviewStatus;
  readonly record: ReviewRecord;
}

/** Where reviews of one branch are asked for: the part of the store that writes them. */
export interface ReviewDesk {
  /**
   * The review of a request: the last one that is bound to the very same and has not expired, else a new
   * one. One that was asked for the same step and is bound to something else lapses.
   *
   * @param stillCounts whether an approval that was used counts for this request still
   */
  ask(request: ReviewRequest, stillCounts: (record: ReviewRecord) => boolean): Promise<AskedReview>;

  /** Uses an approval up, when that cannot happen with the step's intent. */
  use(review: AskedReview): Promise<void>;

  /** Records a refusal by rule, once for the very same request. */
  deny(request: ReviewRequest): Promise<AskedReview>;
}
