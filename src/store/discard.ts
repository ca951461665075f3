import { AgstateError, isAgstateError } from "../core/errors.js";
import type { ObjectId } from "../core/ids.js";
import { quoteForMessage } from "../core/names.js";
import { CANONICAL_REF, shortRefName } from "../refs/names.js";
import { BRANCHES } from "../storage/port.js";
import type { Repository } from "./repository.js";
import { type SideEffect, sideEffectsBetween, sideEffectsBeyond } from "./side-effects.js";

/** What to do about steps with side effects that would be left behind. */
export interface DiscardOptions {
  /**
   * `tell` (default) names them in the answer; `refuse` throws `SIDE_EFFECTS_LEFT` with them, if there are any, and changes
   * nothing; `ignore` does not look, which saves reading the commits that are left.
   */
  readonly sideEffects?: "tell" | "refuse" | "ignore";
}

/** What was left behind. */
export interface LeftBehind {
  /** Steps with side effects; null when nobody looked, or `tell` found history damaged. */
  readonly sideEffects: readonly SideEffect[] | null;
}

/** How many an error's message names; its details have all. */
const NAMED = 5;

/**
 * Looks what the deletion of a branch leaves behind: steps that no other branch has, or those that `since` has not.
 *
 * @throws AgstateError `SIDE_EFFECTS_LEFT`, `REVISION_NOT_FOUND`
 */
export function leftByDeletion(
  repository: Repository,
  { ref, head }: { readonly ref: string; readonly head: ObjectId },
  { sideEffects, since }: DiscardOptions & { readonly since?: string },
): Promise<LeftBehind["sideEffects"]> {
  const look = async () => {
    if (since !== undefined) {
      return sideEffectsBetween(repository, head, [(await repository.revisions.resolve(since)).id]);
    }
    // Nothing else is read where there were no steps.
    if ((await repository.commits.read(head)).nextStep === 1) return [];
    const canonical = (await repository.refs.row(CANONICAL_REF))?.id as ObjectId;
    // It cannot be deleted, and has most of what is: the others are read only where it has not.
    return sideEffectsBeyond(repository, head, canonical, async () => {
      const rows = await repository.refs.list(BRANCHES);
      return rows.filter(({ name }) => name !== ref).map(({ id }) => id as ObjectId);
    });
  };
  const kept = since === undefined ? "no other branch has" : `${quoteForMessage(since)} has not`;
  return left(sideEffects, look, { ref, head, what: "deleting", kept });
}

/**
 * Looks what moving a branch to another commit leaves behind: steps that the target has not, whoever else has them, since
 * work that goes on from there does not know of them.
 *
 * @throws AgstateError `SIDE_EFFECTS_LEFT`
 */
export function leftByReset(
  repository: Repository,
  move: { readonly ref: string; readonly head: ObjectId; readonly target: ObjectId },
  { sideEffects }: DiscardOptions,
): Promise<LeftBehind["sideEffects"]> {
  const look = () => sideEffectsBetween(repository, move.head, [move.target]);
  return left(sideEffects, look, { ...move, what: "resetting", kept: "the target has not" });
}

async function left(
  how: DiscardOptions["sideEffects"] = "tell",
  look: () => Promise<readonly SideEffect[]>,
  at: {
    readonly ref: string;
    readonly head: ObjectId;
    readonly what: string;
    readonly kept: string;
  },
): Promise<LeftBehind["sideEffects"]> {
  if (how === "ignore") return null;
  if (how !== "tell" && how !== "refuse") {
    throw new AgstateError(
      "INVALID_ARGUMENT",
      `sideEffects is ${quoteForMessage(String(how))}; it must be tell, refuse or ignore`,
      { sideEffects: String(how) },
    );
  }
  let effects: readonly SideEffect[];
  try {
    effects = await look();
  } catch (error) {
    // Getting away from a damaged commit is how a branch is repaired.
    if (how === "tell" && isAgstateError(error, "MISSING_OBJECT", "CORRUPT_OBJECT")) return null;
    throw error;
  }
  if (how === "refuse" && effects.length > 0) throw sideEffectsLeft(effects, at);
  return effects;
}

function sideEffectsLeft(
  sideEffects: readonly SideEffect[],
  at: Parameters<typeof left>[2],
): AgstateError {
  const { ref, head, what, kept } = at;
  const count = sideEffects.length;
  const steps = count === 1 ? "1 step" : `${count} steps`;
  const named = sideEffects
    .slice(0, NAMED)
    .map(({ number, name }) => `${number} (${quoteForMessage(name).slice(1, -1)})`);
  const more = count > NAMED ? `, and ${count - NAMED} more` : "";
  return new AgstateError(
    "SIDE_EFFECTS_LEFT",
    `${what} ${shortRefName(ref)} leaves ${steps} with side effects behind, which ${kept}: ${named.join(", ")}${more}; what they did outside is not undone; to go on, agree with --yes (sideEffects: "tell")`,
    { ref, head, sideEffects },
  );
}
