import { OBJECT_ID_HEX_LENGTH, type ObjectId, ZERO_ID } from "../../core/ids.js";
import { compareUtf8 } from "../../core/utf8.js";
import type {
  Below,
  BelowRequest,
  CommitRecord,
  Compacted,
  GraphNode,
  Head,
  PendingRow,
  Redacted,
  Redaction,
  Redeclared,
  RefPattern,
  RefRow,
  ScanPage,
  SeenRow,
  Storage,
  StoreDescription,
  StoredObject,
  StoredReflogEntry,
  StructureProblem,
  Swept,
  Usage,
  Watch,
  WorkflowRecord,
  WriteAnswer,
  WriteBatch,
} from "../port.js";
import { inlineSize, TYPE_NUMBER, typeOf, unpackInline } from "../rows/inline.js";
import { KIND, knownObject, type ObjectRow, objectOf } from "../rows/objects.js";
import { pendingCursor, pendingPage } from "../rows/pending.js";
import { compact } from "./compact.js";
import type { Connection } from "./connection.js";
import type { Queries } from "./queries.js";
import { encodeRedaction, type RedactedColumns } from "./redact.js";
import { explainMaintainRefusal } from "./refusal.js";
import { REPLICA, type ReplicaColumns, replicaOf } from "./replica.js";
import {
  type BelowColumns,
  belowOf,
  type CommitColumns,
  commitOf,
  graphOf,
  type RefColumns,
  refOf,
  splitIds,
  type WorkflowColumns,
  workflowOf,
} from "./rows.js";
import { SCHEMA_VERSION } from "./schema.js";
import type { ServerWatching } from "./watch.js";
import type { WorkflowKeys } from "./workflow-keys.js";
import type { Writer } from "./workflow-writers.js";

/** What {@link PostgresStorage} is made of. */
export interface PostgresParts {
  readonly connection: Connection;
  /** The schema's name, quoted. */
  readonly schema: string;
  readonly queries: Queries;
  readonly keys: WorkflowKeys;
  readonly writer: Writer;
  readonly watching: ServerWatching;
  /** Its tables are distributed over workers. */
  readonly distributed: boolean;
}

/** How many ids, or rows with bodies, one statement reads. */
const PAGE = 5000;

/** The storage port over a PostgreSQL server; every call is one statement, or one a page. */
export class PostgresStorage implements Storage {
  constructor(private readonly parts: PostgresParts) {}

  write(batch: WriteBatch): Promise<WriteAnswer> {
    return this.parts.writer.write(batch);
  }

  async readObjects(w: string, ids: readonly ObjectId[]): Promise<(StoredObject | undefined)[]> {
    const found = new Map<string, StoredObject>();
    for (const page of pages(ids)) {
      const rows = await this.rows<ObjectRow>("objects", w, rawIds(page));
      for (const row of rows) found.set(row.id, objectOf(knownObject(row)));
    }
    return ids.map((id) => found.get(id));
  }

  async readBelow(w: string, request: BelowRequest): Promise<Below> {
    const { ids = [], commits = [], line, entries = [], known = [] } = request;
    const from = line === undefined ? [...new Set(commits)] : [line.from];
    const rows = await this.rows<BelowColumns>(
      line === undefined ? "below" : "belowLine",
      w,
      rawIds(from),
      rawIds(ids),
      [...entries],
      rawIds(known),
      request.maxObjects,
      request.maxBytes,
      ...(line === undefined ? [] : [line.commits]),
    );
    return belowOf(rows);
  }

  async readCommits(w: string, ids: readonly ObjectId[]): Promise<(CommitRecord | undefined)[]> {
    const found = new Map<string, CommitRecord>();
    for (const page of pages(ids)) {
      const rows = await this.rows<CommitColumns>("commits", w, rawIds(page));
      for (const row of rows) found.set(row.id, commitOf(row));
    }
    return ids.map((id) => found.get(id));
  }

  async readRefs(w: string, pattern: RefPattern): Promise<RefRow[]> {
    const rows =
      "names" in pattern
        ? await this.rows<RefColumns>("refsByName", w, [...pattern.names])
        : await this.rows<RefColumns>("refsFrom", w, pattern.prefix, pattern.deleted === true);
    return rows.map(refOf);
  }

  async readHead(w: string, ref: string): Promise<Head | undefined> {
    const [columns] = await this.rows<RefColumns & CommitColumns & { readonly stored: boolean }>(
      "head",
      w,
      ref,
    );
    if (columns === undefined) return undefined;
    return { row: refOf(columns), commit: columns.stored ? commitOf(columns) : undefined };
  }

  async readReflog(
    w: string,
    ref: string,
    { limit, fromSeq = Number.MAX_SAFE_INTEGER }: { limit: number; fromSeq?: number },
  ): Promise<StoredReflogEntry[]> {
    const most = Math.max(0, Math.min(limit, Number.MAX_SAFE_INTEGER));
    const rows = await this.rows<ReflogColumns>("reflog", w, ref, fromSeq, most);
    return rows.map((row) => ({
      ref,
      seq: Number(row.seq),
      hash: row.hash as ObjectId,
      incarnation: row.incarnation,
      old: (row.old ?? ZERO_ID) as ObjectId,
      new: (row.new ?? ZERO_ID) as ObjectId,
      actor: row.actor,
      reason: row.reason,
      time: Number(row.time),
      trace: row.trace,
      previous: (row.previous ?? ZERO_ID) as ObjectId,
    }));
  }

  async readGraph(w: string, ids: readonly ObjectId[], limit: number): Promise<GraphNode[]> {
    const [row] = await this.rows<{ nodes: Buffer | null }>("graph", w, rawIds(ids), limit);
    return graphOf(row?.nodes ?? null);
  }

  async findIds(w: string, prefix: string, limit: number) {
    if (!/^[0-9a-f]{0,64}$/.test(prefix)) return [];
    const from = rawId(prefix.padEnd(OBJECT_ID_HEX_LENGTH, "0"));
    const to = rawId(prefix.padEnd(OBJECT_ID_HEX_LENGTH, "f"));
    const rows = await this.rows<{ id: ObjectId; type: number | null }>("ids", w, from, to, limit);
    const found = rows.map(({ id, type }) => ({
      id,
      type: type === null ? ("commit" as const) : typeOf(type),
    }));
    // As sorted as each kind came, whatever the server made of the two parts.
    const commits = found.filter(({ type }) => type === "commit");
    return [...commits, ...found.filter(({ type }) => type !== "commit")].slice(0, limit);
  }

  async findExternal(w: string, externalId: string): Promise<ObjectId[]> {
    const rows = await this.rows<{ id: ObjectId }>("external", w, externalId);
    return rows.map(({ id }) => id);
  }

  async readPending(w: string, prefixes: readonly string[]): Promise<PendingRow[]> {
    const rows: PendingRow[] = [];
    const sorted = [...prefixes].sort(compareUtf8);
    for (const page of pages(sorted)) {
      for (const row of await this.rows<PendingColumns>("pending", w, page)) {
        rows.push(pendingOf(row));
      }
    }
    return rows;
  }

  async readWorkflows({
    after,
    limit,
  }: {
    after?: string;
    limit: number;
  }): Promise<WorkflowRecord[]> {
    const { connection, queries } = this.parts;
    const rows = await connection.query<Columns<WorkflowColumns>>(
      queries.workflows,
      [after ?? null, limit],
      "workflows",
    );
    return rows.map(workflowOf);
  }

  async readWorkflow(id: string): Promise<WorkflowRecord | undefined> {
    const [row] = await this.rows<WorkflowColumns>("workflow", id, id);
    return row && workflowOf(row);
  }

  scanObjects(w: string, after: string | null, limit: number): Promise<ScanPage<StoredObject>> {
    return this.scan<ObjectRow, StoredObject>(w, after, limit, "objectsAfter", objectOf);
  }

  scanCommits(w: string, after: string | null, limit: number): Promise<ScanPage<CommitRecord>> {
    return this.scan<CommitColumns, CommitRecord>(w, after, limit, "commitsAfter", (row) =>
      commitOf(row, true),
    );
  }

  async scanPending(w: string, after: string | null, limit: number): Promise<ScanPage<PendingRow>> {
    const size = Math.max(1, limit);
    const { key, index } = pendingCursor(after) ?? { key: "", index: 0 };
    const rows = await this.rows<PendingColumns>("pendingAfter", w, key, index, size + 1);
    return pendingPage(rows.map(pendingOf), size);
  }

  async scanSeen(
    w: string,
    type: SeenRow["type"],
    before: number,
    after: string | null,
    limit: number,
  ): Promise<ScanPage<SeenRow>> {
    const size = Math.max(1, limit);
    const values = [before, rawId(after ?? ""), size + 1];
    const found =
      type === "commit"
        ? await this.rows<SeenColumns>("commitsSeen", w, ...values)
        : await this.rows<SeenColumns>("objectsSeen", w, ...values, TYPE_NUMBER[type]);
    const rows = found.slice(0, size).map(
      (row): SeenRow => ({
        id: row.id as ObjectId,
        type,
        generation: Number(row.generation),
        seenAt: Number(row.seen_at),
        bytes: Number(row.bytes),
        erased: row.kind === KIND.tombstone,
      }),
    );
    return { rows, next: found.length > size ? (rows.at(-1)?.id ?? null) : null };
  }

  async readAbandoned(w: string, since: number): Promise<ObjectId[]> {
    const rows = await this.rows<{ id: ObjectId }>("abandoned", w, since);
    return rows.map(({ id }) => id);
  }

  async condemn(w: string, ids: readonly ObjectId[], before: number, by: number): Promise<void> {
    for (const page of pages(ids)) {
      await this.collecting(this.rows("condemn", w, rawIds(page), before, by));
    }
  }

  async sweep(w: string, ids: readonly ObjectId[], by: number): Promise<Swept> {
    const [row] = await this.collecting(
      this.rows<{ removed: string; spared: string | null }>("sweep", w, rawIds(ids), by),
    );
    return { removed: Number(row?.removed ?? 0), spared: splitIds(row?.spared ?? "") };
  }

  async redact(w: string, redaction: Redaction): Promise<Redacted> {
    const [row] = await this.maintaining(
      this.rows<RedactedColumns>("redact", w, ...encodeRedaction(redaction)),
      "taking something out of history",
      "it",
    );
    return {
      objects: Number(row?.objects ?? 0),
      inline: Number(row?.inline ?? 0),
      grafts: Number(row?.grafts ?? 0),
      pending: Number(row?.pending ?? 0),
      bytes: Number(row?.bytes ?? 0),
    };
  }

  async redeclare(w: string, declared: Redeclared): Promise<boolean> {
    const { classification, retentionPolicy } = declared;
    const rows = await this.maintaining(
      this.rows("redeclare", w, classification, retentionPolicy),
      "changing what a workflow declares",
      "it",
    );
    return rows.length > 0;
  }

  watch(w: string, wake: () => void): Promise<Watch> {
    return this.parts.watching.watch(w, wake);
  }

  /** The server keeps watch over its own files (data checksums, amcheck). */
  async checkStructure(): Promise<StructureProblem[]> {
    return [];
  }

  async usage(w: string): Promise<Usage> {
    const [sums] = await this.rows<{
      commits: string;
      commit_bytes: string;
      objects: string;
      object_bytes: string;
      pending: string;
      pending_bytes: string;
    }>("usage", w);
    const usage = {
      commits: Number(sums?.commits ?? 0),
      objects: Number(sums?.objects ?? 0),
      pending: Number(sums?.pending ?? 0),
      bytes:
        Number(sums?.commit_bytes ?? 0) +
        Number(sums?.object_bytes ?? 0) +
        Number(sums?.pending_bytes ?? 0),
    };
    for (let after = ""; ; ) {
      const rows = await this.rows<{ id: string; inline: Buffer }>(
        "inlines",
        w,
        rawId(after),
        PAGE,
      );
      for (const { id, inline } of rows) {
        const kept = inlineSize(unpackInline(inline, id));
        usage.objects += kept.objects;
        usage.bytes += kept.bytes;
      }
      const last = rows.at(-1);
      if (last === undefined || rows.length < PAGE) return usage;
      after = last.id;
    }
  }

  compact(): Promise<Compacted> {
    return compact(this.parts.connection, this.parts.schema);
  }

  async describe(): Promise<StoreDescription> {
    const { connection } = this.parts;
    const rows = await this.meta();
    const replica = rows[0] === undefined ? null : replicaOf(rows[0]);
    connection.foundReplica(replica !== null);
    const meta = new Map(rows.map(({ key, value }) => [key, value]));
    return {
      backend: "postgres",
      location: connection.location,
      schemaVersion: SCHEMA_VERSION,
      storeId: meta.get("store_id") ?? "",
      region: meta.get("region") ?? null,
      replica,
    };
  }

  mayBeReplica(): boolean {
    return this.parts.connection.mayBeReplica;
  }

  async close(): Promise<void> {
    await this.parts.writer.drain();
    await this.parts.watching.close();
    await this.parts.connection.close();
  }

  private async meta(): Promise<(MetaColumns & ReplicaColumns)[]> {
    const { connection, queries, distributed } = this.parts;
    const ask = <Row>(text: string, name = "meta") =>
      connection.query<Columns<Row>>(text, [], name);
    if (!distributed) return ask(queries.metaOnServer);
    // What is asked beside a table a worker may answer, of itself.
    const [rows, [server]] = await Promise.all([
      ask<MetaColumns>(queries.meta),
      ask<ReplicaColumns>(REPLICA, "replica"),
    ]);
    return rows.map((row) => ({ ...row, ...(server as ReplicaColumns) }));
  }

  private collecting<T>(call: Promise<T>): Promise<T> {
    return this.maintaining(call, "removing what nothing refers to", "agstate gc");
  }

  private maintaining<T>(call: Promise<T>, what: string, command: string): Promise<T> {
    return call.catch(async (error: unknown) => {
      throw await explainMaintainRefusal(this.parts.connection, error, what, command);
    });
  }

  /** Runs a statement whose first parameter is the workflow's key. */
  private rows<Row>(name: keyof Queries, w: string, ...values: unknown[]): Promise<Columns<Row>[]> {
    const { connection, queries, keys } = this.parts;
    return connection.query<Columns<Row>>(queries[name], [keys.of(w), ...values], name);
  }

  private async scan<Row, Out extends { readonly id: ObjectId }>(
    w: string,
    after: string | null,
    limit: number,
    name: "objectsAfter" | "commitsAfter",
    decode: (row: Row) => Out,
  ): Promise<ScanPage<Out>> {
    const size = Math.max(1, limit);
    const found = await this.rows<Row>(name, w, rawId(after ?? ""), size + 1);
    const rows = found.slice(0, size).map(decode);
    return { rows, next: found.length > size ? (rows.at(-1)?.id ?? null) : null };
  }
}

type Columns<Row> = Row & Record<string, unknown>;

interface MetaColumns {
  readonly key: string;
  readonly value: string | null;
}

interface SeenColumns {
  readonly id: string;
  readonly generation: string;
  readonly seen_at: string;
  readonly bytes: number;
  readonly kind?: number;
}

interface PendingColumns {
  readonly key: string;
  readonly idx: number;
  readonly body: Buffer;
}

function pendingOf({ key, idx, body }: PendingColumns): PendingRow {
  return { key, index: idx, body };
}

interface ReflogColumns {
  readonly seq: string;
  readonly hash: string;
  readonly incarnation: string;
  readonly old: string | null;
  readonly new: string | null;
  readonly actor: string;
  readonly reason: string;
  readonly time: string;
  readonly trace: string;
  readonly previous: string | null;
}

function rawId(id: string): Buffer {
  return Buffer.from(id, "hex");
}

function rawIds(ids: readonly ObjectId[]): Buffer {
  return Buffer.from(ids.join(""), "hex");
}

/** Each id once, in pages. */
function* pages<Id extends string>(ids: readonly Id[]): Generator<Id[]> {
  const distinct = [...new Set(ids)];
  for (let at = 0; at < distinct.length; at += PAGE) yield distinct.slice(at, at + PAGE);
}
