import { agentRef, parseAgentRef, shortRefName } from "../../refs/names.js";
import { movedRow, type RefUpdate } from "../../refs/ref-store.js";
import type { Repository } from "../repository.js";
import type { GuardedBranch } from "./types.js";

/** A longer name leaves no room for what is put behind it. */
const NAME_MAX_LENGTH = 40;

/** A branch beside one that was moved by somebody else. */
export interface RescueBranch {
  readonly handle: Pick<GuardedBranch, "putUnasked">;
  /** Its short name. */
  readonly name: string;
  /** The commit that it was made at. */
  readonly base: string;
}

/** Makes a branch at the commit that a handle is at, since its own branch was moved by somebody else. */
export async function makeRescueBranch(
  repository: Repository,
  handle: GuardedBranch,
  reason: string,
): Promise<RescueBranch> {
  const { author, loadedHead: base } = handle;
  const { agent, branch } = parseAgentRef(handle.ref) ?? { agent: author, branch: "canonical" };
  const named = branch.length > NAME_MAX_LENGTH ? "" : `${branch}-`;
  const ref = agentRef(agent, `${named}rescued-${repository.context.randomHex(4)}`);
  const update: RefUpdate = {
    ref,
    expect: { kind: "absent" },
    target: base.id,
    note: { actor: author, reason: `branch: ${reason}, as ${handle.name} was moved` },
  };
  const [answer] = await repository.refs.apply({ updates: [update] });
  const fresh = handle.onto(movedRow(update, answer), base);
  return { handle: fresh, name: shortRefName(ref), base: base.id };
}
