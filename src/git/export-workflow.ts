import type { ObjectId } from "../core/ids.js";
import { decodeCommit } from "../objects/commit.js";
import { notStored } from "../objects/reader.js";
import { decodeTree } from "../objects/tree.js";
import { CANONICAL_REF } from "../refs/names.js";
import type { CommitRecord, ObjectRecord } from "../storage/port.js";
import type { Repository } from "../store/repository.js";
import type { Workflow } from "../store/workflow.js";
import { type ExportResult, exportRepository } from "./export.js";
import type { PackObject } from "./pack.js";
import { RedactedHistory } from "./redacted.js";

/** How many commits, or objects, one call to the storage reads. */
const BATCH = 500;

export interface ExportWorkflowOptions {
  /**
   * Makes the history anew, complete and with new ids: what is erased, in another region or encrypted is a blob that says so.
   * Without it, ids are as they are here; what is erased is lacking, pointers and ciphertext are what they are.
   */
  readonly redacted?: boolean;
}

export interface WorkflowExport extends ExportResult {
  /** Objects that are not told: lacking, or replaced where the export is redacted. */
  readonly withheld: number;
  /** Commits below which history was thinned. */
  readonly boundaries: number;
}

/**
 * Writes a workflow as a bare Git repository, with the ids that it has here:
 * all refs and everything that they reach.
 *
 * Where objects are erased it is a partial clone, of which Git knows that some of its objects are elsewhere; where
 * history was thinned, a shallow one.
 *
 * @throws AgstateError `EXPORT_TARGET`, `MISSING_OBJECT`, `CORRUPT_OBJECT`
 */
export async function exportWorkflow(
  workflow: Workflow,
  directory: string,
  options: ExportWorkflowOptions = {},
): Promise<WorkflowExport> {
  const repository = workflow.internals;
  const refs = (await repository.refs.list()).map((row) => ({
    name: row.name,
    id: row.id as ObjectId,
  }));
  const tips = refs.map((ref) => ref.id);
  if (options.redacted === true) {
    const history = new RedactedHistory(repository);
    const result = await exportRepository({
      directory,
      refs: () => refs.map(({ name, id }) => ({ name, id: history.idOf(id) })),
      head: CANONICAL_REF,
      objects: history.objects(tips),
    });
    const withheld = [...history.withheld.values()].reduce((sum, count) => sum + count, 0);
    return { ...result, withheld, boundaries: 0 };
  }
  const lacking: Lacking = { objects: new Set(), boundaries: [] };
  const result = await exportRepository({
    directory,
    refs,
    head: CANONICAL_REF,
    objects: reachable(repository, tips, lacking),
    lacks: () => ({ partial: lacking.objects.size > 0, shallow: lacking.boundaries }),
  });
  return { ...result, withheld: lacking.objects.size, boundaries: lacking.boundaries.length };
}

/** What an export met that is not there. */
interface Lacking {
  readonly objects: Set<ObjectId>;
  /** Commits whose parents are gone. */
  readonly boundaries: ObjectId[];
}

/** Commits with what their trees reach, each object once. */
async function* reachable(
  repository: Repository,
  tips: readonly ObjectId[],
  lacking: Lacking,
): AsyncGenerator<PackObject, void, undefined> {
  const seen = new Set<ObjectId>();
  let page: ObjectId[] = [];
  for await (const node of repository.history.topoWalk(tips)) {
    page.push(node.id);
    if (page.length < BATCH) continue;
    yield* commits(repository, page, seen, lacking);
    page = [];
  }
  yield* commits(repository, page, seen, lacking);
}

async function* commits(
  repository: Repository,
  ids: readonly ObjectId[],
  seen: Set<ObjectId>,
  lacking: Lacking,
): AsyncGenerator<PackObject, void, undefined> {
  const records = await repository.storage.readCommits(repository.workflow, ids);
  for (const record of records as CommitRecord[]) {
    yield { id: record.id, type: "commit", body: record.body };
    const { parents } = decodeCommit(record.body, record.id);
    if (parents.length > record.parents.length) lacking.boundaries.push(record.id);
    const wanted: ObjectId[] = [];
    const inline = record.inline.filter((object) => !seen.has(object.id));
    // All of them before any is followed: the root tree links to the others.
    for (const object of inline) seen.add(object.id);
    for (const object of inline) {
      if ("tombstone" in object) lacking.objects.add(object.id);
      else {
        yield object;
        collect(object, seen, wanted);
      }
    }
    yield* objects(repository, wanted, seen, lacking);
  }
}

async function* objects(
  repository: Repository,
  from: readonly ObjectId[],
  seen: Set<ObjectId>,
  lacking: Lacking,
): AsyncGenerator<PackObject, void, undefined> {
  const wanted = [...from];
  while (wanted.length > 0) {
    const ids = wanted.splice(-BATCH);
    const read = await repository.storage.readObjects(repository.workflow, ids);
    for (let i = 0; i < ids.length; i++) {
      const object = read[i];
      if (object === undefined) throw notStored(ids[i] as ObjectId);
      if ("tombstone" in object) lacking.objects.add(object.id);
      else {
        yield object;
        collect(object, seen, wanted);
      }
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
