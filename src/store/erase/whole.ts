import { setTimeout as sleep } from "node:timers/promises";
import { AgstateError } from "../../core/errors.js";
import type { ObjectId } from "../../core/ids.js";
import { decodeCommit } from "../../objects/commit.js";
import { type LoadedCommit, ROOT_PARTS } from "../../objects/commit-reader.js";
import { encodeValue, type Link, toLink } from "../../objects/encode.js";
import type { ObjectSink } from "../../objects/sink.js";
import { shortRefName } from "../../refs/names.js";
import type { RefUpdate } from "../../refs/ref-store.js";
import { BRANCHES, type RefRow } from "../../storage/port.js";
import { completeWorkflow } from "../complete.js";
import type { Repository } from "../repository.js";
import { prepareCommit } from "../write-commit.js";
import { type Burial, bury } from "./bury.js";
import { type Erasure, noteOf, receiptOf, recordErasure } from "./erasure.js";
import { knownExports } from "./exports.js";
import { MERGES } from "./heads.js";
import { Kept } from "./held.js";
import { Living } from "./reach.js";
import { residueOf } from "./residue.js";
import { OTHER_ROWS } from "./survey.js";
import type { ErasedHead, EraseReport, EraseRequest } from "./types.js";

/** How many rows one scan reads. */
const PAGE = 500;

const ATTEMPTS = 50;
const PAUSE_MAX_MS = 50;

/**
 * Erases a whole workflow: its branches get an empty state, it is completed, and all objects but its audit and those heads
 * become tombstones; pending rows go. The graph stays, and verifies. What commits and logs say in their own text stays as well,
 * since it is the graph.
 *
 * @throws AgstateError `HELD` when any of it is held, and nothing has changed then
 */
export async function eraseWhole(
  repository: Repository,
  erasure: Erasure,
  request: EraseRequest,
): Promise<EraseReport> {
  const kept = await Kept.read(repository);
  const { names } = kept;
  if (names.length > 0) {
    throw new AgstateError(
      "HELD",
      `${repository.workflow} cannot be erased: ${names.length === 1 ? "a hold keeps" : `${names.length} holds keep`} parts of it (${names.slice(0, 5).join(", ")}${names.length > 5 ? ", ..." : ""}); release ${names.length === 1 ? "it" : "them"} first, or erase paths or subjects, which leaves what is held`,
      { workflow: repository.workflow, holds: names },
    );
  }
  const dryRun = request.dryRun === true;
  if (dryRun) {
    const burial = await all(repository, kept);
    const inline = [...burial.inline.values()].reduce((sum, ids) => sum + ids.length, 0);
    return report(repository, erasure, dryRun, [], {
      objects: burial.objects.size,
      inline,
      pending: burial.pending.length,
      bytes: 0,
    });
  }
  await request.onReceipt?.(receiptOf(repository, erasure, []));
  await recordErasure(repository, erasure, "requested", []);
  try {
    const heads = await emptyHeads(repository, erasure);
    await completeWorkflow(repository, { author: erasure.by, openIntents: "leave" });
    // Read anew: the audit has grown, and heads have moved.
    const burial = await all(repository, await Kept.read(repository));
    const done = await bury(repository, burial, noteOf(erasure));
    repository.context.forget();
    const said = await report(repository, erasure, dryRun, heads, done);
    await recordErasure(repository, erasure, said.status, [], said);
    return said;
  } catch (error) {
    await recordErasure(repository, erasure, "failed", [], undefined, error).catch(() => undefined);
    throw error;
  }
}

/** All that goes: whatever is stored, but for the audit, root trees and what heads are. */
async function all(repository: Repository, kept: Kept): Promise<Burial> {
  const { storage, workflow, commits, refs } = repository;
  const living = new Living(repository.objects);
  for (const { id } of await refs.list(BRANCHES)) {
    const head = await commits.read(id as ObjectId);
    if (isEmptied(repository, head)) await living.add(head);
  }
  const objects = new Map<ObjectId, "blob" | "tree">();
  const inline = new Map<ObjectId, ObjectId[]>();
  const pending: { key: string; index: number }[] = [];
  for (let after: string | null = null; ; ) {
    const page = await storage.scanObjects(workflow, after, PAGE);
    for (const object of page.rows) {
      if ("tombstone" in object || kept.isAudit(object.id) || living.has(object.id)) continue;
      objects.set(object.id, object.type);
    }
    after = page.next;
    if (after === null) break;
  }
  for (let after: string | null = null; ; ) {
    const page = await storage.scanCommits(workflow, after, PAGE);
    for (const commit of page.rows) {
      if (kept.isAudit(commit.id)) continue;
      // Without its root tree nobody could tell that a commit is whole.
      const { tree } = decodeCommit(commit.body, commit.id);
      const held = commit.inline.filter((object) => "body" in object && object.id !== tree);
      if (held.length === 0) continue;
      for (const { id, type } of held) objects.set(id, type);
      inline.set(
        commit.id,
        held.map(({ id }) => id),
      );
    }
    after = page.next;
    if (after === null) break;
  }
  for (let after: string | null = null; ; ) {
    const page = await storage.scanPending(workflow, after, PAGE);
    for (const { key, index } of page.rows) if (!OTHER_ROWS.test(key)) pending.push({ key, index });
    after = page.next;
    if (after === null) return { objects, inline, pending };
  }
}

/** Gives each branch a head with an empty state, unless it has one, and drops stored merges. */
async function emptyHeads(repository: Repository, { id, by }: Erasure): Promise<ErasedHead[]> {
  const { refs } = repository;
  const note = { actor: by, reason: `erase: request ${id}` };
  const heads: ErasedHead[] = [];
  for (const row of await refs.list(MERGES)) {
    const expect = { kind: "id", id: row.id as ObjectId } as const;
    await refs.apply({ updates: [{ ref: row.name, expect, target: null, note }] });
  }
  for (const row of await refs.list(BRANCHES)) {
    const head = await emptyHead(repository, by, id, row, note);
    if (head !== null) heads.push(head);
  }
  return heads;
}

async function emptyHead(
  repository: Repository,
  author: string,
  id: string,
  first: RefRow,
  note: RefUpdate["note"],
): Promise<ErasedHead | null> {
  const { refs, commits } = repository;
  let row: RefRow | undefined = first;
  for (let attempt = 1; row !== undefined && row.id !== null; attempt++) {
    const before = await commits.read(row.id);
    if (isEmptied(repository, before)) return null;
    const sink = repository.newSink();
    const state = emptyState(sink);
    const prepared = prepareCommit(repository, {
      sink,
      parents: [before],
      root: { state },
      stateVersion: before.stateVersion,
      author,
      minStep: before.nextStep,
      options: { message: `Erase (request ${id})` },
    });
    const update: RefUpdate = {
      ref: row.name,
      expect: { kind: "id", id: row.id, seq: row.seq },
      target: prepared.record.id,
      commits: [prepared.record],
      note,
    };
    const objects = prepared.objects.map((object) => object.record);
    const [answer] = await refs.apply({ updates: [update], objects });
    if (answer?.outcome === "moved" || answer?.outcome === "landed") {
      return { ref: shortRefName(row.name), old: row.id, new: prepared.record.id };
    }
    // Completed before: what heads hold goes without a new head.
    if (answer?.outcome === "closed") return null;
    if (attempt >= ATTEMPTS) {
      throw new AgstateError(
        "REF_CONFLICT",
        `${shortRefName(row.name)} was moved by others each of ${attempt} times that its state was to be emptied; run it again when there is less going on`,
        { ref: row.name },
      );
    }
    await sleep(Math.random() * PAUSE_MAX_MS);
    row = await refs.row(row.name);
  }
  return null;
}

function emptyState(sink: ObjectSink): Link {
  return toLink(sink, encodeValue(sink, {}, null));
}

/** Whether a head has an empty state, and nothing else. */
function isEmptied(repository: Repository, { root }: LoadedCommit): boolean {
  const { id } = emptyState(repository.newSink());
  return ROOT_PARTS.every((part) => (part === "state" ? root.state?.id === id : !root[part]));
}

async function report(
  repository: Repository,
  { id }: Erasure,
  dryRun: boolean,
  heads: readonly ErasedHead[],
  done: Pick<EraseReport, "objects" | "inline" | "pending" | "bytes">,
): Promise<EraseReport> {
  const { objects, inline, pending, bytes } = done;
  return {
    workflow: repository.workflow,
    id,
    kind: "workflow",
    dryRun,
    status: "done",
    heads,
    objects,
    inline,
    pending,
    bytes,
    held: [],
    shared: [],
    unread: 0,
    residue: [residueOf("graph", repository.workflow)],
    exports: await knownExports(repository),
  };
}
