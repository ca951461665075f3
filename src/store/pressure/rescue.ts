import { agentRef, parseAgentRef, shortRefName } from "../../refs/names.js";
import { movedRow, type RefUpdate } from "../../refs/ref-store.js";
import type { Repository } from "../repository.js";
import type { GuardedBranch, UnaskedFor } from "./types.js";

/** A longer name leaves no room for what is put behind it. */
const NAME_MAX_LENGTH = 40;

/**
 * Commits a state on a new branch, at the commit that a handle is at, since its own branch was moved by somebody else.
 *
 * @returns the commit, and the branch's short name
 */
export async function rescue(
  repository: Repository,
  handle: GuardedBranch,
  made: UnaskedFor,
  state: { readonly value: unknown },
): Promise<{ readonly commit: string; readonly rescue: string }> {
  const { author, loadedHead: base } = handle;
  const { agent, branch } = parseAgentRef(handle.ref) ?? { agent: author, branch: "canonical" };
  const named = branch.length > NAME_MAX_LENGTH ? "" : `${branch}-`;
  const ref = agentRef(agent, `${named}rescued-${repository.context.randomHex(4)}`);
  const update: RefUpdate = {
    ref,
    expect: { kind: "absent" },
    target: base.id,
    note: { actor: author, reason: `branch: ${made.reason}, as ${handle.name} was moved` },
  };
  const [answer] = await repository.refs.apply({ updates: [update] });
  const { id } = await handle.onto(movedRow(update, answer), base).putUnasked(made, state);
  return { commit: id, rescue: shortRefName(ref) };
}
