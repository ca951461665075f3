/**
 * The stable codes of every error that agstate raises on purpose.
 *
 * Programs match on the code; the text of a message may change at any time.
 */
export const ERROR_CODES = [
  "INVALID_VALUE",
  "INVALID_NAME",
  "INVALID_ARGUMENT",
  "INVALID_REVISION",
  "INVALID_PATH",
  "LIMIT_EXCEEDED",
  "AMBIGUOUS_REVISION",
  "REVISION_NOT_FOUND",
  "REF_NOT_FOUND",
  "REF_EXISTS",
  "REF_CONFLICT",
  "PATH_NOT_FOUND",
  "INVALID_POLICY",
  "RESOLVER_NOT_FOUND",
  "RESOLVER_FAILED",
  "MERGE_CONFLICT",
  "MIGRATION_FAILED",
  "SCHEMA_NEEDED",
  "STATE_TOO_NEW",
  "MERGE_NOT_FOUND",
  "UNRELATED_HISTORIES",
  "OPEN_INTENTS",
  "STEP_NOT_FOUND",
  "STEP_MISMATCH",
  "STEP_FENCED",
  "STEP_IN_DOUBT",
  "STEPS_STOPPED",
  "HANDED_OFF",
  "LEASE_HELD",
  "LEASE_LOST",
  "STEP_DENIED",
  "APPROVAL_NEEDED",
  "SIDE_EFFECTS_LEFT",
  "REVIEW_NOT_FOUND",
  "REVIEW_DECIDED",
  "REVIEW_EXPIRED",
  "REVIEW_LAPSED",
  "WORKFLOW_NOT_FOUND",
  "WORKFLOW_EXISTS",
  "WORKFLOW_COMPLETE",
  "REGION_UNKNOWN",
  "REGION_REFUSED",
  "RESIDENCY_REFUSED",
  "STORE_NOT_FOUND",
  "STORE_EXISTS",
  "STORE_DAMAGED",
  "STORE_MISMATCH",
  "STORE_TOO_NEW",
  "STORE_BUSY",
  "STORE_FULL",
  "STORE_READONLY",
  "STORE_UNAVAILABLE",
  "STORE_CLOSED",
  "MISSING_OBJECT",
  "CORRUPT_OBJECT",
  "UNSUPPORTED_ENCODING",
  "ERASED",
  "HELD",
  "WITHHELD",
  "KEY_UNAVAILABLE",
  "INVALID_TRANSCRIPT",
  "EXPORT_TARGET",
  "CHECKPOINT_REFUSED",
  "INTERNAL",
] as const;

export type ErrorCode = (typeof ERROR_CODES)[number];

/** What an error says about itself beyond its message, as plain JSON data. */
export type ErrorDetails = Readonly<Record<string, unknown>>;

/**
 * The one error class of agstate.
 *
 * The message names the input, the limit and the remedy; `code` is stable;
 * `details` holds the same facts as data; `cause` keeps what lay below.
 */
export class AgstateError extends Error {
  override readonly name = "AgstateError";
  readonly code: ErrorCode;
  readonly details: ErrorDetails;

  constructor(
    code: ErrorCode,
    message: string,
    details: ErrorDetails = {},
    options: { cause?: unknown } = {},
  ) {
    super(message, options);
    this.code = code;
    this.details = details;
  }
}

/** Whether the value is an error of agstate, optionally with one of the given codes. */
export function isAgstateError(value: unknown, ...codes: ErrorCode[]): value is AgstateError {
  return value instanceof AgstateError && (codes.length === 0 || codes.includes(value.code));
}
