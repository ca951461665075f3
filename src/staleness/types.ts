/**
 * What a resource that changed, or of which that is not known, is allowed to do.
 *
 * `exact`: it stops whoever goes on. `ignore`: it is not even asked. With a greatest age, what was read may have changed, as long
 * as it is not older than so many milliseconds.
 */
export type Tolerance = "exact" | "ignore" | { readonly maxAgeMs: number };

/** Something outside that work relied on, as a checker finds it again. */
export interface ResourceName {
  /** Which checker knows it: `http`, `git`, `file`, `confluence`, `jira`, `github-pr`, or one of the caller's. */
  readonly type: string;
  /** Where its checker finds it, such as a URL. */
  readonly id: string;
}

/** A resource as an envelope keeps it. */
export interface Resource extends ResourceName {
  /** What its checker said of it when it was read, in a form of the checker's own; null when that is not known. */
  readonly version: string | null;
  readonly tolerance: Tolerance;
  /** When that was, in milliseconds since the Unix epoch. */
  readonly observedAt: number;
  /** Numbers of the steps that relied on it, rising. */
  readonly steps: readonly number[];
}

/** What a checker finds. */
export type Observation =
  | {
      readonly kind: "version";
      readonly version: string;
      /** For people, such as `version 7 of "Refund rules"`; one line. */
      readonly shown?: string;
    }
  /** The source itself says that nothing has changed since the version that it was asked about. */
  | { readonly kind: "same" }
  | { readonly kind: "gone"; readonly why: string }
  /** It cannot be told: no answer, none that makes sense, or one that must not be asked for. */
  | {
      readonly kind: "unknown";
      readonly why: string;
      /** Whether asking again at once may help, as after a 503; default no. */
      readonly again?: boolean;
      /** How long to wait before that, in milliseconds, where the source says so. */
      readonly waitMs?: number;
    };

/** What a checker is asked with. */
export interface CheckContext {
  /** Aborts when the time for this attempt is over. */
  readonly signal: AbortSignal;
  /** Milliseconds since the Unix epoch. */
  readonly now: () => number;
  /** By how much clocks may differ before a date counts as one of the future, in milliseconds; default 5 minutes. */
  readonly skewMs?: number;
}

/** What versions are compared with. */
export interface CompareContext {
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
  /** When the version on record was read, in milliseconds since the Unix epoch. */
  readonly observedAt: number;
  /** By how much clocks may differ, in milliseconds; default 5 minutes. */
  readonly skewMs?: number;
}

/** How two versions of a resource relate. */
export type Compared =
  | "same"
  | "changed"
  /** One of them is none, or lies in the future. */
  | { readonly unknown: string };

/** Knows one type of resource. */
export interface Checker {
  /**
   * Finds what a resource is now.
   *
   * @param resource its id, and the version to compare with where one is on record
   * @throws whatever went wrong: it counts as `unknown`, and is tried again
   */
  observe(
    resource: { readonly id: string; readonly version: string | null },
    context: CheckContext,
  ): Promise<Observation>;
  /** Compares a version on record with one that was found; left out, equal texts are the same. */
  compare?(then: string, now: string, context: CompareContext): Compared;
}

/**
 * A checker of the caller's, as a function: it answers the version, null for what is gone, or an observation.
 */
export type CheckFunction = (
  resource: { readonly id: string; readonly version: string | null },
  context: CheckContext,
) => Promise<string | null | Observation> | string | null | Observation;

/** Checkers by the type of resource that they know. */
export type Checkers = Readonly<Record<string, Checker | CheckFunction>>;

/** What is known of whether something is as it was. */
export type Verdict = "fresh" | "stale" | "unknown";

/** A resource, then and now. */
export interface CheckedResource {
  readonly resource: Resource;
  /** What was found of it; `ignored` when it was not asked. */
  readonly found: "same" | "changed" | "gone" | "unknown" | "ignored";
  /** `fresh` for what is the same or ignored, `stale` for what has changed or is gone. */
  readonly verdict: Verdict;
  /** Whether its tolerance lets work go on in spite of the verdict. */
  readonly tolerated: boolean;
  /** The version that was found; null when none was. */
  readonly now: string | null;
  /** For people: what it is now, where the checker says more than the version. */
  readonly shown?: string;
  /** Why it is so, in one line. */
  readonly why: string;
}
