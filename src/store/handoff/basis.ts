import type { ObjectId } from "../../core/ids.js";
import { isWithheld } from "../../core/withheld.js";
import type { LoadedCommit } from "../../objects/commit-reader.js";
import type { FingerprintRecord } from "../../staleness/fingerprints.js";
import type { Resource } from "../../staleness/types.js";
import type { Repository } from "../repository.js";
import {
  type Envelope,
  envelopeOf,
  type FingerprintTolerance,
  type HandoffEnvelope,
} from "./envelope.js";
import { gatherResources, type Sources } from "./resources.js";
import { readSession, type Session } from "./session.js";

/** What there is to be checked before work goes on from a commit. */
export interface Basis {
  /** The id of the envelope's object; null where there is none. */
  readonly envelope: ObjectId | null;
  /** What came since the envelope. */
  readonly session: Session;
  /** The hand-off that waits to be taken up; null where the branch has none. */
  readonly handoff: HandoffEnvelope | null;
  /** The tag of the hand-off that waits, or that the branch has gone on from. */
  readonly tag: string | null;
  readonly resources: readonly Resource[];
  readonly fingerprints: FingerprintRecord | null;
  readonly fingerprintTolerance: FingerprintTolerance;
  /** What of it is not told, in words: erased, or of another region. */
  readonly untold: readonly string[];
}

/**
 * Reads what work on a commit relies on: what its envelope says, and what steps since have put on record.
 *
 * @param more what whoever hands off says besides
 * @throws AgstateError `MISSING_OBJECT`, `CORRUPT_OBJECT`; `LIMIT_EXCEEDED`
 */
export async function basisAt(
  repository: Repository,
  head: LoadedCommit,
  more: Pick<Sources, "given" | "forget" | "tolerance"> = {},
): Promise<Basis> {
  const read = await envelopeOf(repository, head);
  const session = await readSession(repository, head);
  const envelope: Envelope | null = isWithheld(read) ? null : read;
  const resources: unknown = envelope?.resources ?? [];
  const fingerprints: unknown = envelope?.fingerprints ?? null;
  const untold = [...(envelope?.kind === "handoff" ? (envelope.untold ?? []) : [])];
  const { untold: steps } = session;
  if (steps.length > 0) {
    untold.push(`what ${steps.length === 1 ? "step" : "steps"} ${some(steps)} relied on`);
  }
  if (isWithheld(read) || isWithheld(resources)) untold.push("what an envelope says of resources");
  if (isWithheld(fingerprints)) untold.push("what an envelope says of fingerprints");
  return {
    envelope: head.root.envelope?.id ?? null,
    session,
    handoff: envelope?.kind === "handoff" ? envelope : null,
    tag: envelope?.tag ?? null,
    resources: gatherResources({
      ...more,
      before: isWithheld(resources) ? [] : (resources as readonly Resource[]),
      reliances: session.reliances,
    }),
    fingerprints: isWithheld(fingerprints) ? null : (fingerprints as FingerprintRecord | null),
    fingerprintTolerance: envelope?.fingerprintTolerance ?? "report",
    untold: [...new Set(untold)],
  };
}

/** How many numbers of steps are named. */
const STEPS_NAMED = 20;

function some(steps: readonly number[]): string {
  const named = steps.slice(0, STEPS_NAMED).join(", ");
  return steps.length > STEPS_NAMED ? `${named} and ${steps.length - STEPS_NAMED} more` : named;
}
