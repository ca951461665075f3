import type { ErrorCode } from "../core/errors.js";

/** What the process's exit code says. */
export const EXIT = {
  ok: 0,
  /** The answer is "no": `diff --exit-code` found differences, `merge-base` no common commit, a person said no. */
  negative: 1,
  /** The command line or the input is wrong. */
  usage: 2,
  /** A store, workflow, revision, ref, stored merge or path does not exist. */
  notFound: 3,
  /** Somebody else moved a ref, a name is taken, a merge has conflicts, something is held, or a person must decide or agree first. */
  conflict: 4,
  /** The store cannot be used now: busy, full, read-only, unreachable, or its key is not at hand. */
  unavailable: 5,
  /** The store is damaged: `fsck` found problems, or a read met one. */
  damaged: 6,
  /** A defect of agstate. */
  internal: 70,
} as const;

/** The exit code of each error code. */
export const EXIT_OF_CODE: Readonly<Record<ErrorCode, number>> = {
  INVALID_VALUE: EXIT.usage,
  INVALID_NAME: EXIT.usage,
  INVALID_ARGUMENT: EXIT.usage,
  INVALID_REVISION: EXIT.usage,
  INVALID_PATH: EXIT.usage,
  INVALID_TRANSCRIPT: EXIT.usage,
  LIMIT_EXCEEDED: EXIT.usage,
  EXPORT_TARGET: EXIT.usage,
  AMBIGUOUS_REVISION: EXIT.usage,
  REVISION_NOT_FOUND: EXIT.notFound,
  REF_NOT_FOUND: EXIT.notFound,
  PATH_NOT_FOUND: EXIT.notFound,
  INVALID_POLICY: EXIT.usage,
  RESOLVER_NOT_FOUND: EXIT.notFound,
  RESOLVER_FAILED: EXIT.usage,
  MERGE_CONFLICT: EXIT.conflict,
  MERGE_NOT_FOUND: EXIT.notFound,
  UNRELATED_HISTORIES: EXIT.conflict,
  OPEN_INTENTS: EXIT.conflict,
  STEP_NOT_FOUND: EXIT.notFound,
  STEP_MISMATCH: EXIT.conflict,
  STEP_FENCED: EXIT.conflict,
  STEP_IN_DOUBT: EXIT.conflict,
  HANDED_OFF: EXIT.conflict,
  LEASE_HELD: EXIT.conflict,
  LEASE_LOST: EXIT.conflict,
  STEP_DENIED: EXIT.conflict,
  APPROVAL_NEEDED: EXIT.conflict,
  SIDE_EFFECTS_LEFT: EXIT.conflict,
  REVIEW_NOT_FOUND: EXIT.notFound,
  REVIEW_DECIDED: EXIT.conflict,
  REVIEW_EXPIRED: EXIT.conflict,
  REVIEW_LAPSED: EXIT.conflict,
  WORKFLOW_NOT_FOUND: EXIT.notFound,
  REGION_UNKNOWN: EXIT.usage,
  REGION_REFUSED: EXIT.conflict,
  RESIDENCY_REFUSED: EXIT.conflict,
  STORE_NOT_FOUND: EXIT.notFound,
  REF_EXISTS: EXIT.conflict,
  REF_CONFLICT: EXIT.conflict,
  WORKFLOW_EXISTS: EXIT.conflict,
  WORKFLOW_COMPLETE: EXIT.conflict,
  STORE_EXISTS: EXIT.conflict,
  STORE_BUSY: EXIT.unavailable,
  STORE_FULL: EXIT.unavailable,
  STORE_READONLY: EXIT.unavailable,
  STORE_UNAVAILABLE: EXIT.unavailable,
  STORE_CLOSED: EXIT.unavailable,
  STORE_TOO_NEW: EXIT.unavailable,
  STORE_MISMATCH: EXIT.damaged,
  CHECKPOINT_REFUSED: EXIT.damaged,
  STORE_DAMAGED: EXIT.damaged,
  MISSING_OBJECT: EXIT.damaged,
  CORRUPT_OBJECT: EXIT.damaged,
  UNSUPPORTED_ENCODING: EXIT.damaged,
  ERASED: EXIT.notFound,
  HELD: EXIT.conflict,
  WITHHELD: EXIT.notFound,
  KEY_UNAVAILABLE: EXIT.unavailable,
  INTERNAL: EXIT.internal,
};
