import { isAgstateError } from "../core/errors.js";
import type { ObjectId } from "../core/ids.js";
import { isJsonObject } from "../core/json.js";
import { isWithheld } from "../core/withheld.js";
import { decodeCommit } from "../objects/commit.js";
import { decodeValue } from "../objects/decode.js";
import { hashObject } from "../objects/hash.js";
import { checkPending } from "../objects/pending.js";
import { decodeRecord } from "../objects/reader.js";
import { GENESIS_REF } from "../refs/names.js";
import {
  type CommitRecord,
  ENCODING,
  type ObjectRecord,
  type PendingRow,
  type RefRow,
  type StoredObject,
} from "../storage/port.js";
import { KeyCheck } from "./check-keys.js";
import { type CheckedPayloads, PayloadCheck } from "./check-payloads.js";
import { type GoneObject, goneObject, recordedErasures } from "./erase/tombstones.js";
import { isSaid } from "./redeclare.js";
import { chainOf } from "./reflog-chain.js";
import type { Repository } from "./repository.js";
import { type BoundaryRecord, recordedBoundaries, rowProblem } from "./retention/records.js";

/** One thing that is wrong. */
export interface FsckProblem {
  readonly kind:
    | "corrupt-object"
    | "missing-object"
    | "corrupt-commit"
    | "missing-commit"
    | "bad-graph"
    | "bad-ref"
    | "bad-reflog"
    | "corrupt-pending"
    | "bad-declaration"
    | "missing-payload"
    | "missing-key";
  /** The object, commit, ref or pending row that is damaged or missing. */
  readonly subject: string;
  readonly detail: string;
}

export interface FsckReport {
  readonly workflow: string;
  /** Objects checked, those in commits' rows included. */
  readonly objects: number;
  readonly commits: number;
  readonly refs: number;
  readonly reflogEntries: number;
  readonly pending: number;
  readonly erased: number;
  /** Of each object that is erased or whose retention is over, who took it out, when and why. */
  readonly gone: readonly GoneObject[];
  /** Objects that no commit of the workflow reaches. */
  readonly unreachable: number;
  /** Of a workflow with parts in other regions: the pointers whose payloads were looked for there. */
  readonly payloads?: CheckedPayloads;
  readonly problems: readonly FsckProblem[];
  /** What looks odd and breaks nothing. */
  readonly warnings: readonly FsckWarning[];
}

/** Of an object that is gone, and of which the audit does not tell: whoever can write to the tables can do that. */
export interface FsckWarning {
  readonly kind: "unrecorded-tombstone";
  readonly subject: string;
  readonly detail: string;
}

const PAGE = 1000;

/** What is known of an object: its type, and what it links to. */
interface Known {
  readonly type: "blob" | "tree";
  readonly links: readonly { readonly id: ObjectId; readonly type: "blob" | "tree" }[];
}

/**
 * Checks a workflow: every body against its id, every link of trees and
 * commits, graph columns against commit bodies, refs, each ref's chain of
 * log entries up to the hash in its row, and pending rows against the hashes in them.
 */
export async function checkWorkflow(repository: Repository): Promise<FsckReport> {
  return new Fsck(repository).run();
}

class Fsck {
  private readonly problems: FsckProblem[] = [];
  private readonly known = new Map<ObjectId, Known>();
  private readonly erased = new Map<ObjectId, GoneObject>();
  /** Objects already named as corrupt, so that they are not called missing, too. */
  private readonly corrupt = new Set<ObjectId>();
  private readonly reached = new Set<ObjectId>();
  private readonly commits = new Map<
    ObjectId,
    { generation: number; parents: readonly ObjectId[] }
  >();
  /** Commits whose parents were dropped, as is on record. */
  private boundaries: ReadonlyMap<string, BoundaryRecord> = new Map();
  private reflogEntries = 0;
  private pending = 0;
  private objects = 0;
  private readonly payloads = new PayloadCheck((id, detail) =>
    this.report("corrupt-object", id, detail),
  );

  private readonly keys: KeyCheck;

  constructor(private readonly repository: Repository) {
    this.keys = new KeyCheck(repository.keys, (key, detail) =>
      this.report("missing-key", key, detail),
    );
  }

  async run(): Promise<FsckReport> {
    const { storage, workflow } = this.repository;
    this.boundaries = await recordedBoundaries(this.repository);
    for (let after: string | null = null; ; ) {
      const page = await storage.scanObjects(workflow, after, PAGE);
      await this.keys.prepare(page.rows);
      for (const object of page.rows) this.object(object);
      after = page.next;
      if (after === null) break;
    }
    for (let after: string | null = null; ; ) {
      const page = await storage.scanCommits(workflow, after, PAGE);
      for (const commit of page.rows) this.commit(commit);
      after = page.next;
      if (after === null) break;
    }
    this.graph();
    const refs = await storage.readRefs(workflow, { prefix: "refs/", deleted: true });
    for (const ref of refs) await this.ref(ref);
    for (let after: string | null = null; ; ) {
      const page = await storage.scanPending(workflow, after, PAGE);
      for (const row of page.rows) this.pendingRow(row);
      after = page.next;
      if (after === null) break;
    }
    this.keys.run();
    await this.declaration();
    const { placed } = this.repository;
    const payloads =
      placed &&
      (await this.payloads.run(placed, workflow, (id, region) =>
        this.report("missing-payload", id, `what it points to is not in region ${region}`),
      ));
    let unreachable = 0;
    for (const id of this.known.keys()) if (!this.reached.has(id)) unreachable++;
    return {
      workflow,
      objects: this.objects,
      commits: this.commits.size,
      refs: refs.filter((ref) => ref.id !== null).length,
      reflogEntries: this.reflogEntries,
      pending: this.pending,
      erased: this.erased.size,
      gone: [...this.erased.values()],
      unreachable,
      ...(payloads !== null && { payloads }),
      problems: this.problems,
      warnings: await this.unrecorded(),
    };
  }

  /** Objects that are gone by nobody's order, as far as the audit tells. */
  private async unrecorded(): Promise<FsckWarning[]> {
    if (this.erased.size === 0) return [];
    const recorded = await recordedErasures(this.repository);
    const isKnown = (record: string | null) =>
      record !== null && (recorded.has(record) || this.commits.has(record as ObjectId));
    return [...this.erased.values()]
      .filter(({ record }) => !isKnown(record))
      .map(({ id, type, reason, record }) => ({
        kind: "unrecorded-tombstone" as const,
        subject: id,
        detail: `${type}, ${reason}, and refs/audit has no record ${record ?? "of it"}`,
      }));
  }

  private report(kind: FsckProblem["kind"], subject: string, detail: string): void {
    this.problems.push({ kind, subject, detail });
  }

  private object(object: StoredObject): void {
    this.objects++;
    if ("tombstone" in object) {
      this.erased.set(object.id, goneObject(object));
      return;
    }
    const known = this.inspect(object, object.id);
    if (known !== null) this.known.set(object.id, known);
  }

  /** Checks an object's hash and reads its links; null when it is damaged. */
  private inspect(object: ObjectRecord, subject: string): Known | null {
    const actual = hashObject(object.type, object.body);
    if (actual !== object.id) {
      this.corrupt.add(object.id);
      this.report("corrupt-object", subject, `its bytes hash to ${actual}`);
      return null;
    }
    if (object.encoding === ENCODING.pointer) this.payloads.add(object);
    try {
      if (object.type === "blob") {
        this.keys.open(object);
        return { type: "blob", links: [] };
      }
      const tree = decodeRecord(object);
      return { type: "tree", links: tree.type === "tree" ? tree.entries : [] };
    } catch (error) {
      this.corrupt.add(object.id);
      this.report("corrupt-object", subject, messageOf(error));
      return null;
    }
  }

  private commit(record: CommitRecord): void {
    this.commits.set(record.id, record);
    const actual = hashObject("commit", record.body);
    if (actual !== record.id) {
      this.report("corrupt-commit", record.id, `its bytes hash to ${actual}`);
      return;
    }
    try {
      const fields = decodeCommit(record.body, record.id);
      const problem = rowProblem(fields, record, this.boundaries.get(record.id));
      if (problem !== undefined) this.report("bad-graph", record.id, problem);
      if (fields.committerTime !== record.time) {
        this.report("bad-graph", record.id, "its row has another date than its body");
      }
      if ((fields.externalId ?? null) !== record.externalId) {
        this.report("bad-graph", record.id, "its row has another external id than its body");
      }
      this.reach(record, fields.tree);
    } catch (error) {
      this.report("corrupt-commit", record.id, messageOf(error));
    }
  }

  /** Goes through all that a commit's tree reaches and was not reached before. */
  private reach(commit: CommitRecord, tree: ObjectId): void {
    const inline = new Map<ObjectId, Known>();
    for (const object of commit.inline) {
      this.objects++;
      if ("tombstone" in object) {
        this.erased.set(object.id, goneObject(object));
        continue;
      }
      const known = this.inspect(object, `${object.id} (in commit ${commit.id})`);
      if (known !== null) inline.set(object.id, known);
    }
    const pending: { id: ObjectId; type: "blob" | "tree"; by: string }[] = [
      { id: tree, type: "tree", by: `commit ${commit.id}` },
    ];
    while (pending.length > 0) {
      const { id, type, by } = pending.pop() as { id: ObjectId; type: "blob" | "tree"; by: string };
      const own = inline.get(id);
      if (own === undefined) {
        if (this.reached.has(id)) continue;
        this.reached.add(id);
      }
      const known = own ?? this.known.get(id);
      if (known === undefined) {
        if (!this.erased.has(id) && !this.corrupt.has(id)) {
          this.report("missing-object", id, `${type}, linked from ${by}`);
        }
        continue;
      }
      if (known.type !== type) {
        this.report("corrupt-object", id, `a ${known.type}, but ${by} links to it as a ${type}`);
      }
      for (const link of known.links)
        pending.push({ id: link.id, type: link.type, by: `tree ${id}` });
    }
  }

  private graph(): void {
    for (const [id, commit] of this.commits) {
      let generation = 1;
      for (const parent of commit.parents) {
        const row = this.commits.get(parent);
        if (row === undefined) {
          this.report("missing-commit", parent, `parent of ${id}`);
        } else generation = Math.max(generation, row.generation + 1);
      }
      // One whose parents were dropped keeps its generation.
      if (commit.parents.length === 0 && this.boundaries.has(id)) continue;
      if (commit.parents.every((p) => this.commits.has(p)) && generation !== commit.generation) {
        this.report("bad-graph", id, `generation ${commit.generation} instead of ${generation}`);
      }
    }
  }

  /** Holds the workflow's row against what its audit ref says was declared. */
  private async declaration(): Promise<void> {
    const { storage, workflow, commits } = this.repository;
    const record = await storage.readWorkflow(workflow);
    const genesis = await storage.readHead(workflow, GENESIS_REF);
    if (record === undefined || genesis?.commit === undefined) return;
    try {
      const commit = commits.prime(genesis.commit);
      const { state } = commit.root;
      const said = state && (await decodeValue(this.repository.objectsOf(commit), state));
      if (!isJsonObject(said) || isWithheld(said) || isSaid(said, record)) return;
    } catch (error) {
      // Named already.
      messageOf(error);
      return;
    }
    this.report(
      "bad-declaration",
      workflow,
      "its row declares otherwise than refs/audit/workflow; agstate workflow redeclare makes them one",
    );
  }

  private pendingRow(row: PendingRow): void {
    this.pending++;
    try {
      checkPending(row);
      this.keys.row(row);
    } catch (error) {
      this.report("corrupt-pending", `${row.key} ${row.index}`, messageOf(error));
    }
  }

  private async ref(ref: RefRow): Promise<void> {
    if (ref.id !== null && !this.commits.has(ref.id)) {
      this.report("bad-ref", ref.name, `points to ${ref.id}, which is not stored`);
    }
    const problem = (detail: string) => this.report("bad-reflog", ref.name, detail);
    for await (const _ of chainOf(this.repository, ref, problem)) this.reflogEntries++;
  }
}

function messageOf(error: unknown): string {
  if (isAgstateError(error)) return error.message;
  throw error;
}
