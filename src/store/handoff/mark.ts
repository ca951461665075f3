import { isWithheld, type WithheldReason } from "../../core/withheld.js";
import type { LoadedCommit } from "../../objects/commit-reader.js";
import type { RefRow } from "../../storage/port.js";
import type { Repository } from "../repository.js";
import type { Ref } from "../types.js";
import { toRef } from "../views.js";
import { isBoundary } from "./boundaries.js";
import { envelopeOf, type ResumedEnvelope } from "./envelope.js";
import { type Handoff, toHandoff } from "./info.js";
import { readSession } from "./session.js";

/** How a branch was taken up, as the API tells of it. */
export interface Resumption
  extends Pick<
    ResumedEnvelope,
    "by" | "tag" | "boundary" | "verdict" | "review" | "changes" | "drift" | "resources"
  > {
  /** The commit that says so. */
  readonly commit: string;
  readonly at: Date;
}

/** What a commit says of a session of its branch: that it ended, or that somebody went on. */
export type SessionMark =
  | { readonly kind: "handoff"; readonly handoff: Handoff }
  | { readonly kind: "resumed"; readonly resumed: Resumption }
  /** It says something that is not told. */
  | { readonly kind: "withheld"; readonly reason: WithheldReason };

/** The hand-off that a head carries and nobody has taken up; null where there is none, or it is not told. */
export async function handedOffAt(
  repository: Repository,
  head: LoadedCommit,
): Promise<Handoff | null> {
  const envelope = await envelopeOf(repository, head);
  if (envelope === null || isWithheld(envelope) || envelope.kind !== "handoff") return null;
  const { boundary } = await readSession(repository, head);
  return toHandoff(boundary ?? head, envelope);
}

/** Which of some branches have a hand-off at their heads that nobody has taken up. */
export async function handoffsAmong(
  repository: Repository,
  branches: readonly { readonly row: RefRow; readonly head: LoadedCommit }[],
): Promise<{ readonly ref: Ref; readonly handoff: Handoff }[]> {
  const found: { readonly ref: Ref; readonly handoff: Handoff }[] = [];
  for (const { row, head } of branches) {
    const handoff = await handedOffAt(repository, head);
    if (handoff !== null) found.push({ ref: toRef(row), handoff });
  }
  return found;
}

/**
 * What a commit says of a session; null for one that says nothing of its own, and so only carries on what was said before, or
 * that a later version wrote.
 *
 * @throws AgstateError `REVISION_NOT_FOUND`
 */
export async function sessionAt(
  repository: Repository,
  revision: string,
): Promise<SessionMark | null> {
  const commit = await repository.commitAt(revision);
  if (!(await isBoundary(repository, commit))) return null;
  const envelope = await envelopeOf(repository, commit);
  if (envelope === null) return null;
  if (isWithheld(envelope)) return { kind: "withheld", reason: envelope.reason };
  if (envelope.kind === "handoff") {
    return { kind: "handoff", handoff: toHandoff(commit, envelope) };
  }
  const { by, at, tag, boundary, verdict, review, changes, drift, resources } = envelope;
  const told = { by, tag, boundary, verdict, review, changes, drift, resources };
  return { kind: "resumed", resumed: { ...told, commit: commit.id, at: new Date(at) } };
}
