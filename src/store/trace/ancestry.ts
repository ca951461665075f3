import { isAgstateError } from "../../core/errors.js";
import type { Repository } from "../repository.js";
import type { Fact } from "./commits.js";

/** How far down known commits are looked at before the history is asked. */
const NEAR = 64;

/**
 * Whether a commit is below another, or is it. Where what lies between them is not stored any more, nothing speaks against it:
 * what is missing there is told by itself.
 *
 * @param facts commits that need not be read
 */
export async function mayBeBelow(
  { history }: Repository,
  facts: ReadonlyMap<string, Fact>,
  base: Fact,
  top: Fact,
): Promise<boolean> {
  let at: Fact | undefined = top;
  for (let i = 0; i < NEAR && at !== undefined && at.generation >= base.generation; i++) {
    if (at.id === base.id || at.parents.includes(base.id)) return true;
    at = facts.get(at.parents[0] ?? "");
  }
  if (base.generation >= top.generation) return false;
  try {
    return await history.isAncestor(base.id, top.id);
  } catch (error) {
    if (isAgstateError(error, "MISSING_OBJECT")) return true;
    throw error;
  }
}
