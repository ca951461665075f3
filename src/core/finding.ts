import type { ErrorCode } from "./errors.js";

/** One thing that a look at a store, and at what it stands on, found. */
export interface Finding {
  /** Stable name of what was looked at, such as `fsync`. */
  readonly check: string;
  readonly level: "good" | "warning" | "wrong";
  /** What is so, in a sentence. */
  readonly what: string;
  /** What to do about it; null where nothing is to be done. */
  readonly remedy: string | null;
  /** Of what is wrong: the error that using the store meets. */
  readonly code: ErrorCode | null;
}

export function good(check: string, what: string): Finding {
  return { check, level: "good", what, remedy: null, code: null };
}

export function warning(check: string, what: string, remedy: string): Finding {
  return { check, level: "warning", what, remedy, code: null };
}

export function wrong(check: string, code: ErrorCode, what: string, remedy: string): Finding {
  return { check, level: "wrong", what, remedy, code };
}
