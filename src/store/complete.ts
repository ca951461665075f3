import { setTimeout as sleep } from "node:timers/promises";
import { AgstateError } from "../core/errors.js";
import type { ObjectId } from "../core/ids.js";
import type { JsonValue } from "../core/json.js";
import { checkIdentity, checkOneLine } from "../core/names.js";
import { decodeValue } from "../objects/decode.js";
import { encodeValue, toLink } from "../objects/encode.js";
import { ObjectSink } from "../objects/sink.js";
import { GENESIS_REF, shortRefName } from "../refs/names.js";
import { movedRow, type RefUpdate } from "../refs/ref-store.js";
import { BRANCHES, type Head } from "../storage/port.js";
import type { Repository } from "./repository.js";
import { prepareCommit } from "./write-commit.js";

export interface CompleteOptions {
  /** Who completes it; default `agstate`. */
  readonly author?: string;
  /** Why, in one line. */
  readonly reason?: string;
}

/** What an erasure asks besides: steps that are begun stay as they are, as there will be nothing left to seal them with. */
interface InternalOptions extends CompleteOptions {
  readonly openIntents?: "leave";
}

/** How often it is tried again when branches move meanwhile. */
const ATTEMPTS = 50;
const PAUSE_MAX_MS = 50;
const REASON_MAX_BYTES = 500;

/**
 * Completes a workflow: a commit on its audit ref says who did it and why, each branch's log ends with it, and no
 * branch moves to a commit any more. One compare-and-swap of all branches, so that each step landed
 * before, or is refused.
 *
 * @returns when it was completed, in milliseconds; null when it had been before
 * @throws AgstateError `OPEN_INTENTS`, `REF_CONFLICT` when branches move all the time
 */
export async function completeWorkflow(
  repository: Repository,
  options: InternalOptions,
): Promise<number | null> {
  const { storage, workflow, context, refs } = repository;
  const author = checkIdentity("author", options.author ?? "agstate");
  const reason = checkOneLine("reason", options.reason ?? "", REASON_MAX_BYTES);
  for (let attempt = 1; ; attempt++) {
    const record = await storage.readWorkflow(workflow);
    if (record?.completedAt != null) return null;
    const genesis = (await refs.head(GENESIS_REF)) as Head;
    const branches = await refs.list(BRANCHES);
    const ids = branches.map(({ id }) => id as ObjectId);
    const heads = await repository.commits.readAll(ids);
    const open = heads.flatMap(({ inFlight }, i) =>
      inFlight.length === 0 ? [] : [{ branch: shortRefName(branches[i]!.name), steps: inFlight }],
    );
    if (open.length > 0 && options.openIntents !== "leave") throw openIntents(workflow, open);

    const at = context.now();
    const before = await repository.commits.read(genesis.row.id as ObjectId);
    const link = before.root.state;
    const declared = link && (await decodeValue(repository.objectsOf(before), link));
    const completed = { at, by: author, ...(reason === "" ? {} : { reason }) };
    const state: JsonValue = { ...(declared as Record<string, JsonValue>), completed };
    const sink = new ObjectSink();
    const prepared = prepareCommit(repository, {
      sink,
      parents: [before],
      root: { state: toLink(sink, encodeValue(sink, state, null)) },
      author,
      minStep: 1,
      options: { message: `Complete workflow ${workflow}${reason === "" ? "" : `\n\n${reason}`}` },
    });
    const note = { actor: author, reason: "workflow: completed" };
    const updates: RefUpdate[] = [
      {
        ref: GENESIS_REF,
        expect: { kind: "id", id: before.id, seq: genesis.row.seq },
        target: prepared.record.id,
        commits: [prepared.record],
        note,
      },
      // No commit, but an entry in the log, which whoever is about to write did not expect.
      ...branches.map(({ name, seq }, i): RefUpdate => {
        const id = ids[i] as ObjectId;
        return { ref: name, expect: { kind: "id", id, seq }, target: id, note };
      }),
    ];
    const objects = prepared.objects.map((object) => object.record);
    const answers = await refs.apply({ updates, objects, complete: at });
    const lost = answers.findIndex(({ outcome }) => outcome === "conflict");
    if (lost < 0 && answers.every(({ outcome }) => outcome !== "closed")) {
      for (const [i, update] of updates.entries()) movedRow(update, answers[i]);
      return at;
    }
    if (attempt >= ATTEMPTS) movedRow(updates[lost] as RefUpdate, answers[lost]);
    await sleep(Math.random() * PAUSE_MAX_MS);
  }
}

function openIntents(
  workflow: string,
  open: readonly { readonly branch: string; readonly steps: readonly number[] }[],
): AgstateError {
  const [first] = open;
  const others = open.length > 1 ? `, and ${open.length - 1} more branches have some` : "";
  return new AgstateError(
    "OPEN_INTENTS",
    `${workflow} cannot be completed: step ${first?.steps.join(", ")} of ${first?.branch} was begun and not sealed${others}; seal them, or delete the branch, first`,
    { workflow, open },
  );
}
