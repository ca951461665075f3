import { AgstateError } from "../../core/errors.js";
import { isWithheld, type Withheld } from "../../core/withheld.js";
import type { LoadedCommit } from "../../objects/commit-reader.js";
import type { Repository } from "../repository.js";
import { envelopeOf, type HandoffEnvelope } from "./envelope.js";

/**
 * Lets work begin on a branch, or refuses it while its head has the envelope of a hand-off: whoever goes on is to learn
 * first what has changed meanwhile.
 *
 * An envelope is carried over by all that comes on top of it, so that what is known of one is known for a whole session.
 *
 * @returns undefined where nothing has to be read
 * @throws AgstateError `HANDED_OFF`
 */
export function mayBegin(
  repository: Repository,
  head: LoadedCommit,
  branch: string,
): Promise<void> | undefined {
  const link = head.root.envelope;
  if (link === undefined || repository.takenUp.has(link.id)) return undefined;
  return refuseHandedOff(repository, head, branch);
}

/**
 * Whether a commit has the envelope of a hand-off that nobody has taken up; one that is not told may be.
 *
 * @throws AgstateError `UNSUPPORTED_ENCODING` for an envelope of a later version
 */
export async function isHandedOff(repository: Repository, commit: LoadedCommit): Promise<boolean> {
  return (await handedOff(repository, commit)) !== null;
}

async function handedOff(
  repository: Repository,
  commit: LoadedCommit,
): Promise<HandoffEnvelope | Withheld | null> {
  const link = commit.root.envelope;
  if (link === undefined || repository.takenUp.has(link.id)) return null;
  const envelope = await envelopeOf(repository, commit);
  if (envelope === null) {
    throw new AgstateError(
      "UNSUPPORTED_ENCODING",
      `commit ${commit.id} has an envelope that this version does not know; use a newer agstate`,
      { commit: commit.id },
    );
  }
  if (isWithheld(envelope) || envelope.kind === "handoff") return envelope;
  repository.takenUp.add(link.id);
  return null;
}

async function refuseHandedOff(
  repository: Repository,
  head: LoadedCommit,
  branch: string,
): Promise<void> {
  const envelope = await handedOff(repository, head);
  if (envelope === null) return;
  const [tag, by] = isWithheld(envelope) ? [null, null] : [envelope.tag, envelope.by];
  throw new AgstateError(
    "HANDED_OFF",
    `${branch} was handed off${tag === null ? "" : ` at tags/${tag} by ${by}`}, and nobody has taken it up: call branch.resume() first (agstate resume ${branch} --take-up), which tells what has changed meanwhile`,
    { branch, tag },
  );
}
