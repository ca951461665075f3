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
import { gatherResources } from "./resources.js";
import { readSession } from "./session.js";

/** What there is to be checked before work goes on from a commit. */
export interface Basis {
  /** The id of the envelope's object; null where there is none. */
  readonly envelope: ObjectId | null;
  /** The commit that brought the envelope; null where there is none. */
  readonly boundary: LoadedCommit | null;
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
 * @throws AgstateError `MISSING_OBJECT`, `CORRUPT_OBJECT`
 */
export async function basisAt(repository: Repository, head: LoadedCommit): Promise<Basis> {
  const read = await envelopeOf(repository, head);
  const { boundary, reliances, untold: since } = await readSession(repository, head);
  const envelope: Envelope | null = isWithheld(read) ? null : read;
  const before = envelope?.kind === "handoff" ? envelope.facts?.untold : undefined;
  const steps = [...(before?.items ?? []), ...since];
  const untold: string[] = [];
  if (steps.length > 0) {
    const more = (before?.count ?? 0) + since.length > steps.length ? " and others" : "";
    const which = steps.length === 1 && more === "" ? "step" : "steps";
    untold.push(`what ${which} ${steps.join(", ")}${more} relied on`);
  }
  const resources: unknown = envelope?.resources ?? [];
  const fingerprints: unknown = envelope?.fingerprints ?? null;
  if (isWithheld(read) || isWithheld(resources)) untold.push("what the envelope says of resources");
  if (isWithheld(fingerprints)) untold.push("what the envelope says of fingerprints");
  return {
    envelope: head.root.envelope?.id ?? null,
    boundary,
    handoff: envelope?.kind === "handoff" ? envelope : null,
    tag: envelope?.tag ?? null,
    resources: gatherResources({
      before: isWithheld(resources) ? [] : (resources as readonly Resource[]),
      reliances,
    }),
    fingerprints: isWithheld(fingerprints) ? null : (fingerprints as FingerprintRecord | null),
    fingerprintTolerance: envelope?.fingerprintTolerance ?? "report",
    untold,
  };
}
