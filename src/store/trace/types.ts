/** Something that spans say and the store does not, or the other way round. */
export interface TraceProblem {
  readonly kind: /** A span says that a commit landed, and the store does not have it: nor is it on record that it was dropped. */
    | "success-without-commit"
    /** A commit whose trace was sampled and is among the spans has no span of its own there. */
    | "commit-without-span"
    /** A step's span says that it was sealed, and no commit seals it. */
    | "success-without-seal"
    /** A span says that a commit did not land, and it did. */
    | "failure-with-commit"
    /** A commit names another trace, another span or another sampling than the span that names the commit. */
    | "wrong-trace"
    | "wrong-workflow"
    | "wrong-branch"
    | "wrong-step"
    | "wrong-merge"
    /** A step began before what it goes on from had landed, or a commit landed before what it stands on. */
    | "out-of-order"
    /** Two spans of one step say that the same attempt called its tool. */
    | "duplicate-attempt"
    /** Two spans say that they wrote the same commit, or two spans of one id say different things. */
    | "duplicate-span"
    /** Times that cannot be, or differ from those of the store by more than the tolerance. */
    | "clock-skew"
    /** A commit's bytes are not what its id says. */
    | "corrupt-commit";
  /** Null where no workflow is named. */
  readonly workflow: string | null;
  readonly commit: string | null;
  readonly traceId: string | null;
  readonly spanId: string | null;
  /** What is so. */
  readonly detail: string;
  /** What to look at, or do. */
  readonly remedy: string;
}

/** Something that is as it should be, though it may not look so. */
export interface TraceNotice {
  readonly kind: /** Commits that retention dropped, as is on record. */
    | "dropped"
    /** Commits that nothing reached any more, and that collection removed. */
    | "collected"
    /** Commits of memoized reads that were gathered, and lost by a kill or a race before they landed. */
    | "gathered"
    /** Commits that landed whose writers did not get the answer. */
    | "lost-answer"
    /** Commits whose spans came before all that was kept of their trace, as where a collector kept it only when something failed. */
    | "kept-in-part";
  readonly workflow: string;
  /** How many commits it is about. */
  readonly count: number;
  readonly detail: string;
}

export interface TraceReport {
  /** Spans that were read, whoever made them. */
  readonly spans: number;
  readonly traces: number;
  /** Spans that tell of a step or of a commit, of the workflows that were looked at. */
  readonly checked: number;
  /** Those that the spans name and the store has. */
  readonly workflows: readonly string[];
  /** Commits that spans name or that owe one. */
  readonly commits: number;
  readonly problems: readonly TraceProblem[];
  readonly notices: readonly TraceNotice[];
}

export interface VerifyTraceOptions {
  /** Only this workflow; default all that the spans name. */
  readonly workflow?: string | undefined;
  /** By how much clocks may differ, in milliseconds; default 1,000. */
  readonly toleranceMs?: number | undefined;
}
