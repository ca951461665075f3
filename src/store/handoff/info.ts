import type { Resource } from "../../staleness/types.js";
import type { Commit } from "../types.js";
import type { HandoffEnvelope, SessionFacts } from "./envelope.js";
import type { HandoffSummary } from "./summary.js";

/** A hand-off, as the API tells of it. */
export interface Handoff {
  /** The commit with the envelope. */
  readonly commit: string;
  /** Without `tags/`. */
  readonly tag: string;
  /** Short name of the branch that was handed off. */
  readonly branch: string;
  readonly by: string;
  readonly at: Date;
  readonly summary: HandoffSummary;
  readonly note: string;
  readonly facts: SessionFacts;
  /** What of it is not told, in words; then nobody goes on from it without a review. */
  readonly untold: readonly string[];
  readonly resources: readonly Resource[];
  /** Whether it says what the work was done with. */
  readonly fingerprints: HandoffEnvelope["fingerprints"];
}

export function toHandoff({ id }: Pick<Commit, "id">, envelope: HandoffEnvelope): Handoff {
  const { tag, branch, by, at, summary, note, facts, resources, fingerprints } = envelope;
  const { untold = [] } = envelope;
  return {
    commit: id,
    tag,
    branch,
    by,
    at: new Date(at),
    summary,
    note,
    facts,
    untold,
    resources,
    fingerprints,
  };
}
