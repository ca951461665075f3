import { AgstateError } from "../../core/errors.js";
import { type ObjectId, ZERO_ID } from "../../core/ids.js";
import { compareUtf8 } from "../../core/utf8.js";
import { Wakers } from "../../core/wakers.js";
import { closedGuard } from "../decorators/closed-guard.js";
import {
  type BackendOptions,
  type CommitRecord,
  type GraphNode,
  type Head,
  hasMoved,
  type ObjectType,
  type PendingRow,
  type Redacted,
  type Redaction,
  type Redeclared,
  type RefPattern,
  type RefRow,
  type ScanPage,
  type SeenRow,
  type Storage,
  type StoredObject,
  type StoredReflogEntry,
  type Swept,
  type Watch,
  type WorkflowRecord,
  type WriteAnswer,
  type WriteBatch,
} from "../port.js";
import { bytesOf, inlineSize } from "../rows/inline.js";
import { pendingCursor, pendingPage } from "../rows/pending.js";
import { NOTHING_REDACTED } from "../rows/redaction.js";
import { redact } from "./redact.js";
import {
  applyBatch,
  copyCommit,
  copyObject,
  putPending,
  readPending,
  WorkflowState,
} from "./workflow-state.js";

/**
 * The executable model of the storage port: exact, obvious, gone with the process.
 *
 * Every call does its work at once, before it returns its promise, so calls
 * are serial by construction.
 */
export function createMemoryStorage(
  options: BackendOptions,
  region: string | null = null,
): Storage {
  return closedGuard(new MemoryStorage(options, region));
}

class MemoryStorage implements Storage {
  readonly #workflows = new Map<string, WorkflowState>();
  readonly #wakers = new Wakers();
  readonly #storeId: string;

  constructor(
    readonly options: BackendOptions,
    readonly region: string | null,
  ) {
    this.#storeId = options.randomHex(16);
  }

  async write(batch: WriteBatch): Promise<WriteAnswer> {
    if (new Set(batch.moves.map((m) => m.ref)).size < batch.moves.length) {
      throw new AgstateError("INVALID_ARGUMENT", "a batch moves one ref twice; send two batches", {
        refs: batch.moves.map((m) => m.ref),
      });
    }
    const skipped = batch.moves.map(() => ({ outcome: "skipped" }) as const);
    if (batch.create !== undefined) {
      if (this.#workflows.has(batch.create.id)) return { workflow: "exists", moves: skipped };
      this.#workflows.set(batch.create.id, new WorkflowState({ ...batch.create }));
    }
    const state = this.#workflows.get(batch.workflow);
    if (state === undefined) return { workflow: "missing", moves: skipped };
    putPending(state, batch);
    const answer: WriteAnswer = {
      workflow: batch.create === undefined ? "ok" : "created",
      moves: applyBatch(state, batch, this.options),
    };
    if (hasMoved(answer)) this.#wakers.wake(batch.workflow);
    return answer;
  }

  async readObjects(w: string, ids: readonly ObjectId[]): Promise<(StoredObject | undefined)[]> {
    const objects = this.#workflows.get(w)?.objects;
    return ids.map((id) => {
      const object = objects?.get(id);
      return object && copyObject(object);
    });
  }

  async readCommits(w: string, ids: readonly ObjectId[]): Promise<(CommitRecord | undefined)[]> {
    const commits = this.#workflows.get(w)?.commits;
    return ids.map((id) => {
      const commit = commits?.get(id);
      return commit && copyCommit(commit);
    });
  }

  async readRefs(w: string, pattern: RefPattern): Promise<RefRow[]> {
    const rows = [...(this.#workflows.get(w)?.refs.values() ?? [])];
    return rows
      .filter((row) =>
        "names" in pattern
          ? pattern.names.includes(row.name)
          : row.name.startsWith(pattern.prefix) && (row.id !== null || pattern.deleted === true),
      )
      .sort((a, b) => compareUtf8(a.name, b.name));
  }

  async readHead(w: string, ref: string): Promise<Head | undefined> {
    const state = this.#workflows.get(w);
    const row = state?.refs.get(ref);
    if (state === undefined || row === undefined) return undefined;
    const commit = row.id === null ? undefined : state.commits.get(row.id);
    return { row, commit: commit && copyCommit(commit) };
  }

  async readReflog(
    w: string,
    ref: string,
    { limit, fromSeq = Number.POSITIVE_INFINITY }: { limit: number; fromSeq?: number },
  ): Promise<StoredReflogEntry[]> {
    const log = this.#workflows.get(w)?.logs.get(ref) ?? [];
    const end = Math.max(0, Math.min(fromSeq, log.length));
    return log.slice(Math.max(0, end - limit), end).reverse();
  }

  async readGraph(w: string, ids: readonly ObjectId[], limit: number): Promise<GraphNode[]> {
    const commits = this.#workflows.get(w)?.commits ?? new Map<ObjectId, CommitRecord>();
    const seen = new Set<ObjectId>();
    const answer: GraphNode[] = [];
    /** Met and not yet answered, next one last: rising generation, then falling id. */
    const waiting: GraphNode[] = [];

    const meet = (id: ObjectId): GraphNode | undefined => {
      const commit = commits.get(id);
      if (commit === undefined || seen.has(id)) return undefined;
      seen.add(id);
      const { parents, generation, time } = commit;
      return { id, parents, generation, time };
    };
    const starts = ids.map(meet).filter((node) => node !== undefined);
    answer.push(...starts.slice(0, limit));
    const wait = (node: GraphNode) => {
      let low = 0;
      let high = waiting.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        const other = waiting[middle]!;
        const before =
          other.generation < node.generation ||
          (other.generation === node.generation && other.id > node.id);
        if (before) low = middle + 1;
        else high = middle;
      }
      waiting.splice(low, 0, node);
    };
    const meetParents = (node: GraphNode) => {
      for (const parent of node.parents) {
        const met = meet(parent);
        if (met !== undefined) wait(met);
      }
    };
    for (const node of starts) meetParents(node);
    while (waiting.length > 0 && answer.length < limit) {
      const node = waiting.pop()!;
      answer.push(node);
      meetParents(node);
    }
    return answer;
  }

  async findIds(w: string, prefix: string, limit: number) {
    const state = this.#workflows.get(w);
    if (state === undefined) return [];
    const commits = [...state.commits.keys()].map((id) => ({ id, type: "commit" as const }));
    const objects = [...state.objects.values()].map(({ id, type }) => ({ id, type }));
    const found = (all: readonly { id: ObjectId; type: "commit" | "tree" | "blob" }[]) =>
      all.filter(({ id }) => id.startsWith(prefix)).sort((a, b) => (a.id < b.id ? -1 : 1));
    return [...found(commits), ...found(objects)].slice(0, limit);
  }

  async findExternal(w: string, externalId: string): Promise<ObjectId[]> {
    return [...(this.#workflows.get(w)?.commits.values() ?? [])]
      .filter((commit) => commit.externalId === externalId)
      .sort((a, b) => a.generation - b.generation || a.time - b.time || (a.id < b.id ? -1 : 1))
      .map((commit) => commit.id);
  }

  async readPending(w: string, prefixes: readonly string[]): Promise<PendingRow[]> {
    const state = this.#workflows.get(w);
    return state === undefined ? [] : readPending(state, prefixes);
  }

  async readWorkflows({ after, limit }: { after?: string; limit: number }) {
    return [...this.#workflows.values()]
      .map(({ record }) => record)
      .filter(({ id }) => after === undefined || compareUtf8(id, after) > 0)
      .sort((a, b) => compareUtf8(a.id, b.id))
      .slice(0, limit);
  }

  async readWorkflow(id: string): Promise<WorkflowRecord | undefined> {
    return this.#workflows.get(id)?.record;
  }

  async scanObjects(w: string, after: string | null, limit: number) {
    return page([...(this.#workflows.get(w)?.objects.values() ?? [])], after, limit, copyObject);
  }

  async scanCommits(w: string, after: string | null, limit: number) {
    return page([...(this.#workflows.get(w)?.commits.values() ?? [])], after, limit, copyCommit);
  }

  async scanPending(w: string, after: string | null, limit: number) {
    const rows = await this.readPending(w, [""]);
    const cursor = pendingCursor(after);
    const isLeft = ({ key, index }: PendingRow) => {
      const order = cursor === null ? 1 : compareUtf8(key, cursor.key);
      return order > 0 || (order === 0 && index > (cursor?.index ?? 0));
    };
    return pendingPage(rows.filter(isLeft), Math.max(1, limit));
  }

  async scanSeen(
    w: string,
    type: ObjectType | "commit",
    before: number,
    after: string | null,
    limit: number,
  ): Promise<ScanPage<SeenRow>> {
    const state = this.#workflows.get(w);
    if (state === undefined) return { rows: [], next: null };
    return page(seenRows(state, type, before), after, limit, (row) => row);
  }

  async readAbandoned(w: string, since: number): Promise<ObjectId[]> {
    const logs = [...(this.#workflows.get(w)?.logs.values() ?? [])].flat();
    return [...new Set(logs.filter(({ time }) => time >= since).map((entry) => entry.old))].filter(
      (id) => id !== ZERO_ID,
    );
  }

  async condemn(w: string, ids: readonly ObjectId[], before: number, by: number): Promise<void> {
    const seen = this.#workflows.get(w)?.seen;
    for (const id of ids) if ((seen?.get(id) ?? before) < before) seen?.set(id, -by);
  }

  async sweep(w: string, ids: readonly ObjectId[], by: number): Promise<Swept> {
    const state = this.#workflows.get(w);
    if (state === undefined) return { removed: 0, spared: [] };
    const spared = ids.filter((id) => state.seen.has(id) && state.seen.get(id) !== -by);
    if (spared.some((id) => state.commits.has(id))) return { removed: 0, spared };
    let removed = 0;
    for (const id of ids) {
      if (state.seen.get(id) !== -by) continue;
      for (const rows of [state.commits, state.objects]) if (rows.delete(id)) removed++;
      state.seen.delete(id);
    }
    return { removed, spared };
  }

  async redact(w: string, redaction: Redaction): Promise<Redacted> {
    const state = this.#workflows.get(w);
    return state === undefined ? NOTHING_REDACTED : redact(state, redaction);
  }

  async redeclare(w: string, declared: Redeclared): Promise<boolean> {
    const state = this.#workflows.get(w);
    if (state === undefined) return false;
    const { classification, retentionPolicy } = declared;
    state.record = { ...state.record, classification, retentionPolicy };
    return true;
  }

  async watch(w: string, wake: () => void): Promise<Watch> {
    const remove = this.#wakers.add(w, wake);
    return { close: async () => remove() };
  }

  async checkStructure() {
    return [];
  }

  async usage(w: string) {
    const state = this.#workflows.get(w);
    const commits = [...(state?.commits.values() ?? [])];
    const stored = [...(state?.objects.values() ?? []), ...commits.flatMap((c) => c.inline)];
    const whole = inlineSize(stored);
    const pending = state === undefined ? [] : readPending(state, [""]);
    const bytes = [...commits, ...pending].reduce(
      (sum, { body }) => sum + body.length,
      whole.bytes,
    );
    return { commits: commits.length, objects: whole.objects, pending: pending.length, bytes };
  }

  /** Nothing is to be given back: what is gone left no space behind. */
  async compact() {
    let bytes = 0;
    for (const w of this.#workflows.keys()) bytes += (await this.usage(w)).bytes;
    return { bytesBefore: bytes, bytesAfter: bytes };
  }

  async describe() {
    return {
      backend: "memory",
      location: "memory:",
      schemaVersion: 1,
      storeId: this.#storeId,
      region: this.region,
      replica: null,
    };
  }

  async close(): Promise<void> {
    this.#workflows.clear();
    this.#wakers.end();
  }
}

/** Rows of one kind that were last seen before a moment. */
function seenRows(state: WorkflowState, type: SeenRow["type"], before: number): SeenRow[] {
  const rows: SeenRow[] = [];
  const meet = (id: ObjectId, generation: number, bytes: number, erased: boolean) => {
    const at = state.seen.get(id) ?? 0;
    if (at < before) {
      rows.push({ id, type, generation, seenAt: Math.max(0, at), bytes, erased });
    }
  };
  if (type === "commit") {
    for (const { id, generation, body, inline } of state.commits.values()) {
      meet(
        id,
        generation,
        inline.reduce((sum, object) => sum + bytesOf(object).length, body.length),
        false,
      );
    }
  } else {
    for (const object of state.objects.values()) {
      if (object.type === type) meet(object.id, 0, bytesOf(object).length, "tombstone" in object);
    }
  }
  return rows;
}

/** A page has at least one row, or a scan would never end. */
function page<Row extends { id: ObjectId }>(
  all: readonly Row[],
  after: string | null,
  limit: number,
  copy: (row: Row) => Row,
) {
  const sorted = all.filter(({ id }) => after === null || id > after).sort(byId);
  const size = Math.max(1, limit);
  const rows = sorted.slice(0, size).map(copy);
  return { rows, next: sorted.length > size ? rows.at(-1)!.id : null };
}

function byId(a: { id: ObjectId }, b: { id: ObjectId }): number {
  return a.id < b.id ? -1 : 1;
}
