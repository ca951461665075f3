import type { Database } from "better-sqlite3";
import { OBJECT_ID_HEX_LENGTH, type ObjectId } from "../../core/ids.js";
import { compareUtf8 } from "../../core/utf8.js";
import {
  type CommitRecord,
  type Compacted,
  type GraphNode,
  type Head,
  hasMoved,
  type PackedGraph,
  type PendingRow,
  type Redacted,
  type Redaction,
  type Redeclared,
  type RefPattern,
  type RefRow,
  type ScanPage,
  type SeenRow,
  type Storage,
  type StoreDescription,
  type StoredObject,
  type StoredReflogEntry,
  type StructureProblem,
  type Swept,
  type Usage,
  type Watch,
  type WorkflowRecord,
  type WriteAnswer,
  type WriteBatch,
} from "../port.js";
import { inlineSize, typeOf, unpackInline } from "../rows/inline.js";
import { knownObject, objectOf } from "../rows/objects.js";
import { pendingCursor, pendingPage } from "../rows/pending.js";
import { NOTHING_REDACTED } from "../rows/redaction.js";
import type { RoundTrips } from "../rows/round-trips.js";
import { scanSeen, sweep } from "./collect.js";
import { compact } from "./compact.js";
import { toStoreError } from "./errors.js";
import { readNear } from "./graph-near.js";
import { walkGraph } from "./graph-walk.js";
import type { GroupWriter } from "./group-writer.js";
import { redact } from "./redact.js";
import { ReflogReader } from "./reflog-reader.js";
import { retryWhileBusy } from "./retry.js";
import {
  commitOf,
  endOfPrefix,
  idOf,
  objectRow,
  rawId,
  refOf,
  splitIds,
  workflowOf,
} from "./rows.js";
import { schemaVersion } from "./schema.js";
import type { RowOf, Statements } from "./statements.js";
import { checkStructure } from "./structure.js";
import { FileWatching } from "./watch.js";
import type { WorkflowNumbers } from "./workflow-numbers.js";

/** What {@link SqliteStorage} is made of. */
export interface SqliteParts {
  readonly db: Database;
  readonly statements: Statements;
  readonly numbers: WorkflowNumbers;
  readonly writer: GroupWriter;
  readonly trips: RoundTrips;
  /** The store's directory. */
  readonly location: string;
  readonly busyTimeoutMs: number;
  /** Closes the connection and whatever else is open. */
  readonly release: () => void;
}

/**
 * The storage port over one SQLite connection.
 *
 * Each read is one synchronous transaction, so it sees one snapshot and no
 * write comes between.
 */
export class SqliteStorage implements Storage {
  readonly #reflog: ReflogReader;
  readonly #watching: FileWatching;

  constructor(readonly parts: SqliteParts) {
    this.#reflog = new ReflogReader(parts.statements);
    this.#watching = new FileWatching(parts.statements);
  }

  async write(batch: WriteBatch): Promise<WriteAnswer> {
    const answer = await this.parts.writer.write(batch);
    if (hasMoved(answer)) this.#watching.wrote(batch.workflow);
    return answer;
  }

  readObjects(w: string, ids: readonly ObjectId[]): Promise<(StoredObject | undefined)[]> {
    return this.#read("readObjects", w, (statements, wf) =>
      ids.map((id) => {
        const row = wf === undefined ? undefined : statements.object.get(wf, rawId(id));
        return row && objectOf(knownObject(objectRow(row)));
      }),
    );
  }

  readCommits(w: string, ids: readonly ObjectId[]): Promise<(CommitRecord | undefined)[]> {
    return this.#read("readCommits", w, (statements, wf) =>
      ids.map((id) => {
        const row = wf === undefined ? undefined : statements.commitRow.get(wf, rawId(id));
        return row && commitOf(row);
      }),
    );
  }

  readRefs(w: string, pattern: RefPattern): Promise<RefRow[]> {
    return this.#read("readRefs", w, (statements, wf) => {
      if (wf === undefined) return [];
      if ("names" in pattern) {
        const names = [...new Set(pattern.names)];
        return names
          .map((name) => statements.ref.get(wf, name))
          .filter((row) => row !== undefined)
          .map(refOf)
          .sort((a, b) => compareUtf8(a.name, b.name));
      }
      const end = endOfPrefix(pattern.prefix);
      const rows = statements.refsFrom.all(wf, pattern.prefix, end).map(refOf);
      return pattern.deleted === true ? rows : rows.filter((row) => row.id !== null);
    });
  }

  readHead(w: string, ref: string): Promise<Head | undefined> {
    return this.#read("readHead", w, (statements, wf) => {
      const columns = wf === undefined ? undefined : statements.ref.get(wf, ref);
      if (wf === undefined || columns === undefined) return undefined;
      const row = refOf(columns);
      const commit = row.id === null ? undefined : statements.commitRow.get(wf, rawId(row.id));
      return { row, commit: commit && commitOf(commit) };
    });
  }

  readReflog(
    w: string,
    ref: string,
    { limit, fromSeq = Number.MAX_SAFE_INTEGER }: { limit: number; fromSeq?: number },
  ): Promise<StoredReflogEntry[]> {
    return this.#read("readReflog", w, (_, wf) =>
      wf === undefined ? [] : this.#reflog.read(wf, ref, limit, fromSeq),
    );
  }

  readGraph(w: string, ids: readonly ObjectId[], limit: number): Promise<GraphNode[]> {
    return this.#read("readGraph", w, (statements, wf) => {
      if (wf === undefined) return [];
      return walkGraph(ids, limit, (id) => {
        const row = statements.commitGraph.get(wf, rawId(id));
        return row && { ...row, id, parents: splitIds(row.parents) };
      });
    });
  }

  readGraphNear(w: string, ids: readonly ObjectId[], limit: number): Promise<PackedGraph> {
    return this.#read("readGraphNear", w, (statements, wf) =>
      wf === undefined ? Buffer.alloc(0) : readNear(statements, wf, ids, limit),
    );
  }

  findIds(w: string, prefix: string, limit: number) {
    return this.#read("findIds", w, (statements, wf) => {
      if (wf === undefined || !/^[0-9a-f]{0,64}$/.test(prefix)) return [];
      const from = rawId(prefix.padEnd(OBJECT_ID_HEX_LENGTH, "0"));
      const to = rawId(prefix.padEnd(OBJECT_ID_HEX_LENGTH, "f"));
      const commits = statements.commitIds
        .all(wf, from, to, limit)
        .map((row) => ({ id: idOf(row.id), type: "commit" as const }));
      const objects = statements.objectIds
        .all(wf, from, to, limit - commits.length)
        .map((row) => ({ id: idOf(row.id), type: typeOf(row.type) }));
      return [...commits, ...objects];
    });
  }

  findExternal(w: string, externalId: string): Promise<ObjectId[]> {
    return this.#read("findExternal", w, (statements, wf) =>
      wf === undefined
        ? []
        : statements.commitsExternal.all(wf, externalId).map((row) => idOf(row.id)),
    );
  }

  readPending(w: string, prefixes: readonly string[]): Promise<PendingRow[]> {
    return this.#read("readPending", w, (statements, wf) => {
      if (wf === undefined) return [];
      return [...prefixes]
        .sort(compareUtf8)
        .flatMap((prefix) =>
          statements.pending.all(wf, prefix, endOfPrefix(prefix)).map(pendingOf),
        );
    });
  }

  readWorkflows({ after, limit }: { after?: string; limit: number }): Promise<WorkflowRecord[]> {
    const { workflowsFirst, workflowsAfter } = this.parts.statements;
    return this.#retry(() =>
      (after === undefined ? workflowsFirst.all(limit) : workflowsAfter.all(after, limit)).map(
        workflowOf,
      ),
    );
  }

  readWorkflow(id: string): Promise<WorkflowRecord | undefined> {
    return this.#retry(() => {
      const row = this.parts.statements.workflow.get(id);
      return row && workflowOf(row);
    });
  }

  scanObjects(w: string, after: string | null, limit: number): Promise<ScanPage<StoredObject>> {
    return this.#scan(w, after, limit, "objectsAfter", (row) => objectOf(objectRow(row)));
  }

  scanCommits(w: string, after: string | null, limit: number): Promise<ScanPage<CommitRecord>> {
    return this.#scan(w, after, limit, "commitsAfter", (row) => commitOf(row, true));
  }

  scanPending(w: string, after: string | null, limit: number): Promise<ScanPage<PendingRow>> {
    const size = Math.max(1, limit);
    const { key, index } = pendingCursor(after) ?? { key: "", index: 0 };
    return this.#read("scanPending", w, (statements, wf) => {
      if (wf === undefined) return { rows: [], next: null };
      return pendingPage(
        statements.pendingAfter.all(wf, key, index, size + 1).map(pendingOf),
        size,
      );
    });
  }

  scanSeen(
    w: string,
    type: SeenRow["type"],
    before: number,
    after: string | null,
    limit: number,
  ): Promise<ScanPage<SeenRow>> {
    return this.#read("scanSeen", w, (statements, wf) =>
      wf === undefined
        ? { rows: [], next: null }
        : scanSeen(statements, wf, type, before, after, limit),
    );
  }

  readAbandoned(w: string, since: number): Promise<ObjectId[]> {
    return this.#read("readAbandoned", w, (statements, wf) =>
      wf === undefined ? [] : statements.abandoned.all(wf, since).map((row) => idOf(row.old)),
    );
  }

  async condemn(w: string, ids: readonly ObjectId[], before: number, by: number): Promise<void> {
    await this.#change("condemn", w, (statements, wf) => {
      for (const id of ids) statements.condemn.run(-by, wf, rawId(id), before);
    });
  }

  async sweep(w: string, ids: readonly ObjectId[], by: number): Promise<Swept> {
    const swept = await this.#change("sweep", w, (statements, wf) =>
      sweep(statements, wf, ids, by),
    );
    return swept ?? { removed: 0, spared: [] };
  }

  async redact(w: string, redaction: Redaction): Promise<Redacted> {
    const redacted = await this.#change("redact", w, (statements, wf) =>
      redact(statements, wf, redaction),
    );
    return redacted ?? NOTHING_REDACTED;
  }

  async redeclare(w: string, declared: Redeclared): Promise<boolean> {
    const { classification, retentionPolicy } = declared;
    const changed = await this.#change("redeclare", w, (statements, wf) => {
      statements.redeclare.run(classification, retentionPolicy, wf);
      return true;
    });
    return changed ?? false;
  }

  watch(w: string, wake: () => void): Promise<Watch> {
    return this.#retry(() => this.#watching.watch(w, wake));
  }

  checkStructure(): Promise<StructureProblem[]> {
    return this.#retry(() => checkStructure(this.parts.db));
  }

  usage(w: string): Promise<Usage> {
    return this.#read("usage", w, (statements, wf) => {
      if (wf === undefined) return { commits: 0, objects: 0, pending: 0, bytes: 0 };
      const { commits, bytes } = statements.commitUsage.get(wf)!;
      const objects = statements.objectUsage.get(wf)!;
      const pending = statements.pendingUsage.get(wf)!;
      const usage = {
        commits,
        objects: objects.objects,
        pending: pending.pending,
        bytes: bytes + objects.bytes + pending.bytes,
      };
      for (const { id, inline } of statements.commitInlines.iterate(wf)) {
        const kept = inlineSize(unpackInline(inline, idOf(id)));
        usage.objects += kept.objects;
        usage.bytes += kept.bytes;
      }
      return usage;
    });
  }

  async compact(): Promise<Compacted> {
    await this.parts.writer.drain();
    return compact(this.parts.db, (work) => this.#retry(work));
  }

  describe(): Promise<StoreDescription> {
    const { db, statements, location } = this.parts;
    const meta = (key: string) => {
      const value = statements.meta.get(key) ?? null;
      return value === null ? null : String(value);
    };
    return this.#retry(() => ({
      backend: "sqlite",
      location,
      schemaVersion: schemaVersion(db),
      storeId: meta("store_id") ?? "",
      region: meta("region"),
      replica: null,
    }));
  }

  async close(): Promise<void> {
    await this.parts.writer.drain();
    this.#watching.close();
    this.parts.release();
  }

  /** Changes one workflow in a transaction of its own; nothing happens when there is none such. */
  #change<T>(
    operation: string,
    w: string,
    work: (statements: Statements, wf: number) => T,
  ): Promise<T | undefined> {
    const { statements, numbers, writer, trips } = this.parts;
    return this.#retry(() =>
      writer.transact(() =>
        trips.runHere({ operation }, () => {
          const wf = numbers.get(w);
          return wf === undefined ? undefined : work(statements, wf);
        }),
      ),
    );
  }

  /** Reads from one workflow inside one transaction; `wf` is undefined when there is none such. */
  #read<T>(
    operation: string,
    w: string,
    work: (statements: Statements, wf: number | undefined) => T,
  ): Promise<T> {
    const { db, statements, numbers, trips } = this.parts;
    return this.#retry(() =>
      trips.runHere({ operation }, () => {
        statements.beginRead.run();
        try {
          return work(statements, numbers.get(w));
        } finally {
          // SQLite itself rolls back after some errors.
          if (db.inTransaction) statements.commit.run();
        }
      }),
    );
  }

  /** Reads a page of at least one row, in the order of ids, and one row more to see whether it is the last. */
  #scan<N extends "objectsAfter" | "commitsAfter", Row extends { id: ObjectId }>(
    w: string,
    after: string | null,
    limit: number,
    statement: N,
    decode: (columns: RowOf<N>) => Row,
  ): Promise<ScanPage<Row>> {
    const size = Math.max(1, limit);
    return this.#read(statement, w, (statements, wf) => {
      if (wf === undefined) return { rows: [], next: null };
      const found = statements[statement].all(wf, rawId(after ?? ""), size + 1) as RowOf<N>[];
      const rows = found.slice(0, size).map(decode);
      return { rows, next: found.length > size ? rows.at(-1)!.id : null };
    });
  }

  async #retry<T>(work: () => T): Promise<T> {
    const { location, busyTimeoutMs } = this.parts;
    try {
      return await retryWhileBusy(work, location, busyTimeoutMs);
    } catch (error) {
      throw toStoreError(error, location);
    }
  }
}

function pendingOf({ key, idx, body }: RowOf<"pending">): PendingRow {
  return { key, index: idx, body };
}
