import type { JsonValue } from "../core/json.js";

/** The version of the record that this code writes. */
export const REVIEW_RECORD_VERSION = 1;

/**
 * Where a review stands.
 *
 * `open` waits for a decision. `approved` and `discarded` are decisions; `used` is an approval by which
 * what was asked for has begun. `expired` came too late, `lapsed` asks for what is not so any more.
 * `denied` records a refusal by rule, on which nobody decides.
 */
export const REVIEW_STATUSES = [
  "open",
  "approved",
  "used",
  "discarded",
  "expired",
  "lapsed",
  "denied",
] as const;
export type ReviewStatus = (typeof REVIEW_STATUSES)[number];

/** A place in a branch's state, and what stood there when the review was opened. */
export interface BoundPath {
  /** JSON Pointer. */
  readonly path: string;
  /** SHA-256 of the value's canonical text, with the workflow's key where it has one; null where nothing stood. */
  readonly digest: string | null;
}

/** What a decision is asked for, and all that it is bound to. */
export interface ReviewSubject {
  /** Short name of the branch. */
  readonly branch: string;
  readonly incarnation: string;
  /** The step's number where it is known before it runs. */
  readonly number: number | null;
  /** Where in a run it is asked for; null outside a run. */
  readonly place: {
    readonly run: string;
    readonly scope: readonly string[];
    readonly index: number;
  } | null;
  readonly name: string;
  readonly action: string;
  /** As recorded: secrets are replaced. */
  readonly input?: JsonValue;
  readonly key: string | null;
  /** Of a step that was begun: which attempt it was. */
  readonly attempt: number | null;
  readonly paths: readonly BoundPath[];
}

/** What became of a step that was in doubt, as a person found out. */
export type FoundOut =
  | { readonly happened: true; readonly output?: JsonValue }
  | { readonly happened: false };

export interface ReviewDecision {
  readonly by: string;
  readonly reason: string;
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
  readonly found?: FoundOut;
}

/** A review as its ref keeps it: each change is a commit with the whole of it. */
export interface ReviewRecord {
  readonly v: number;
  /** `approval`, `in-doubt`, `denial`, or a word of the part that asks. */
  readonly kind: string;
  readonly status: ReviewStatus;
  readonly subject: ReviewSubject;
  readonly askedBy: string;
  /** Milliseconds since the Unix epoch. */
  readonly askedAt: number;
  /** Null when it waits for ever. */
  readonly expiresAt: number | null;
  /** Why it was asked; may be empty. */
  readonly reason: string;
  readonly decision: ReviewDecision | null;
  /** Of an approval that was used: for which step; null where that has no number before it ends. */
  readonly use: { readonly number: number | null; readonly at: number } | null;
}

/** A record as it was read, or null when it is of a version or a form that this code does not know. */
export function parseReviewRecord(value: JsonValue | null): ReviewRecord | null {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
  const record = value as unknown as Partial<ReviewRecord>;
  const known =
    typeof record.v === "number" &&
    record.v <= REVIEW_RECORD_VERSION &&
    (REVIEW_STATUSES as readonly unknown[]).includes(record.status) &&
    typeof record.kind === "string" &&
    typeof record.subject === "object" &&
    typeof record.askedAt === "number";
  return known ? (record as ReviewRecord) : null;
}

/** Where a review stands at a time: one that has waited too long, or was approved and not used in time, has expired. */
export function statusAt(
  { status, expiresAt }: Pick<ReviewRecord, "status" | "expiresAt">,
  now: number,
): ReviewStatus {
  const waits = status === "open" || status === "approved";
  return waits && expiresAt !== null && now >= expiresAt ? "expired" : status;
}
