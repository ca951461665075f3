import type { ObjectId } from "../../core/ids.js";
import { isWithheld } from "../../core/withheld.js";
import type { LoadedCommit } from "../../objects/commit-reader.js";
import { lineFrom } from "../line.js";
import type { Repository } from "../repository.js";
import { type SideEffect, sideEffectsBetween } from "../side-effects.js";
import { envelopeOf } from "./envelope.js";
import { type Handoff, toHandoff } from "./info.js";

/** A hand-off on a branch's line, and what going on from it would do again. */
export interface Boundary {
  readonly handoff: Handoff;
  /** Steps of the branch since. */
  readonly steps: number;
  /** Those among them, and among what was merged since, that did something outside, or may have: that is not undone. */
  readonly sideEffects: readonly SideEffect[];
}

/**
 * The hand-offs on a branch's line of first parents, newest first.
 *
 * @throws AgstateError `MISSING_OBJECT`, `CORRUPT_OBJECT`
 */
export async function boundariesOf(
  repository: Repository,
  head: LoadedCommit,
): Promise<Boundary[]> {
  const found: Boundary[] = [];
  const steps = new Set<number>();
  let after: LoadedCommit | undefined;
  const take = async (commit: LoadedCommit) => {
    const envelope = await envelopeOf(repository, commit);
    if (envelope === null || isWithheld(envelope) || envelope.kind !== "handoff") return;
    const sideEffects = await sideEffectsBetween(repository, head.id, [commit.id]);
    found.push({ handoff: toHandoff(commit, envelope), steps: steps.size, sideEffects });
  };
  for await (const { commit } of lineFrom(repository, head.id, "envelope")) {
    // A commit brought its envelope when the one before has another.
    if (after !== undefined && brought(after, commit)) await take(after);
    if (after?.step !== undefined) steps.add(after.step.number);
    after = commit;
  }
  if (after?.root.envelope !== undefined) await take(after);
  return found;
}

function brought(commit: LoadedCommit, parent: LoadedCommit): boolean {
  return commit.root.envelope !== undefined && commit.root.envelope.id !== parent.root.envelope?.id;
}

/** Whether a commit itself hands its branch off. */
export async function isHandoff(repository: Repository, commit: LoadedCommit): Promise<boolean> {
  if (!(await isBoundary(repository, commit))) return false;
  const envelope = await envelopeOf(repository, commit);
  return envelope !== null && !isWithheld(envelope) && envelope.kind === "handoff";
}

/** Whether a commit itself brought the envelope that it has. */
export async function isBoundary(repository: Repository, commit: LoadedCommit): Promise<boolean> {
  const parent = commit.parents[0];
  if (parent === undefined) return commit.root.envelope !== undefined;
  return brought(commit, await repository.commits.read(parent as ObjectId));
}
