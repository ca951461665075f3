import { AgstateError } from "../core/errors.js";
import type { ObjectId } from "../core/ids.js";
import { decodeTree } from "../objects/tree.js";
import { CANONICAL_REF } from "../refs/names.js";
import type { CommitRecord, ObjectRecord } from "../storage/port.js";
import type { Repository } from "../store/repository.js";
import type { Workflow } from "../store/workflow.js";
import { type ExportResult, exportRepository } from "./export.js";
import type { PackObject } from "./pack.js";

/** How many commits, or objects, one call to the storage reads. */
const BATCH = 500;

/**
 * Writes a workflow as a bare Git repository, with the ids that it has here:
 * all refs and everything that they reach.
 *
 * @throws AgstateError `EXPORT_TARGET`, `MISSING_OBJECT`, `CORRUPT_OBJECT`, `ERASED`
 */
export async function exportWorkflow(workflow: Workflow, directory: string): Promise<ExportResult> {
  const repository = workflow.internals;
  const refs = (await repository.refs.list()).map((row) => ({
    name: row.name,
    id: row.id as ObjectId,
  }));
  return exportRepository({
    directory,
    refs,
    head: CANONICAL_REF,
    objects: reachable(
      repository,
      refs.map((ref) => ref.id),
    ),
  });
}

/** Commits with what their trees reach, each object once. */
async function* reachable(
  repository: Repository,
  tips: readonly ObjectId[],
): AsyncGenerator<PackObject, void, undefined> {
  const seen = new Set<ObjectId>();
  let page: ObjectId[] = [];
  for await (const node of repository.history.topoWalk(tips)) {
    page.push(node.id);
    if (page.length < BATCH) continue;
    yield* commits(repository, page, seen);
    page = [];
  }
  yield* commits(repository, page, seen);
}

async function* commits(
  repository: Repository,
  ids: readonly ObjectId[],
  seen: Set<ObjectId>,
): AsyncGenerator<PackObject, void, undefined> {
  const records = await repository.storage.readCommits(repository.workflow, ids);
  for (const record of records as CommitRecord[]) {
    yield { id: record.id, type: "commit", body: record.body };
    const wanted: ObjectId[] = [];
    const inline = record.inline.filter((object) => !seen.has(object.id));
    // All of them before any is followed: the root tree links to the others.
    for (const object of inline) seen.add(object.id);
    for (const object of inline) {
      if ("tombstone" in object) throw notThere(object.id, object);
      yield object;
      collect(object, seen, wanted);
    }
    yield* objects(repository, wanted, seen);
  }
}

async function* objects(
  repository: Repository,
  from: readonly ObjectId[],
  seen: Set<ObjectId>,
): AsyncGenerator<PackObject, void, undefined> {
  const wanted = [...from];
  while (wanted.length > 0) {
    const ids = wanted.splice(-BATCH);
    const read = await repository.storage.readObjects(repository.workflow, ids);
    for (let i = 0; i < ids.length; i++) {
      const object = read[i];
      if (object === undefined || "tombstone" in object) throw notThere(ids[i] as ObjectId, object);
      yield object;
      collect(object, seen, wanted);
    }
  }
}

/** Adds what a tree links to and was not taken yet. */
function collect(object: ObjectRecord, seen: Set<ObjectId>, wanted: ObjectId[]): void {
  if (object.type !== "tree") return;
  const body = Buffer.from(object.body.buffer, object.body.byteOffset, object.body.byteLength);
  for (const { id } of decodeTree(body, object.id)) {
    if (seen.has(id)) continue;
    seen.add(id);
    wanted.push(id);
  }
}

function notThere(id: ObjectId, erased: unknown): AgstateError {
  return erased === undefined
    ? new AgstateError("MISSING_OBJECT", `object ${id} is not in the store; run agstate fsck`, {
        id,
      })
    : new AgstateError(
        "ERASED",
        `object ${id} was erased, so a complete repository cannot be written`,
        { id },
      );
}
