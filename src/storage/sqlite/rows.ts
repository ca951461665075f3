import {
  OBJECT_ID_BYTES,
  OBJECT_ID_HEX_LENGTH,
  type ObjectId,
  objectIdAt,
  ZERO_ID,
} from "../../core/ids.js";
import type { CommitRecord, GraphNode, RefRow, WorkflowRecord } from "../port.js";
import { unpackInline } from "../rows/inline.js";
import type { ObjectRow } from "../rows/objects.js";

/** The raw bytes of an id, as columns hold them. */
export function rawId(id: string): Buffer {
  return Buffer.from(id, "hex");
}

/** The id of a column; null, as columns hold "no object", is `ZERO_ID`. */
export function idOf(raw: Buffer | null): ObjectId {
  return raw === null ? ZERO_ID : (raw.toString("hex") as ObjectId);
}

/** The raw bytes of an id where `ZERO_ID` is kept as null. */
export function rawOrNull(id: ObjectId): Buffer | null {
  return id === ZERO_ID ? null : rawId(id);
}

/** Ids, one after the other. */
export function packIds(ids: readonly ObjectId[]): Buffer {
  return Buffer.from(ids.join(""), "hex");
}

/** What is above every text with the prefix, as bytes: none of UTF-8 is FF. */
export function endOfPrefix(prefix: string): Buffer {
  return Buffer.concat([Buffer.from(prefix), Buffer.from([0xff])]);
}

function unpackIds(packed: Buffer): ObjectId[] {
  const ids: ObjectId[] = [];
  for (let at = 0; at + OBJECT_ID_BYTES <= packed.length; at += OBJECT_ID_BYTES) {
    ids.push(objectIdAt(packed, at));
  }
  return ids;
}

/** Ids in hex, one after the other. */
export function splitIds(hex: string): ObjectId[] {
  const ids: ObjectId[] = [];
  for (let at = 0; at + OBJECT_ID_HEX_LENGTH <= hex.length; at += OBJECT_ID_HEX_LENGTH) {
    ids.push(hex.slice(at, at + OBJECT_ID_HEX_LENGTH) as ObjectId);
  }
  return ids;
}

export interface ObjectColumns {
  type: number;
  kind: number;
  encoding: number;
  id: Buffer;
  body: Buffer;
}

/** The row with its id in hex. */
export function objectRow(row: ObjectColumns): ObjectRow {
  return { ...row, id: idOf(row.id) };
}

export interface GraphColumns {
  generation: number;
  time: number;
  id: Buffer;
  parents: Buffer;
}

function graphNodeOf(row: GraphColumns): GraphNode {
  return {
    id: idOf(row.id),
    parents: unpackIds(row.parents),
    generation: row.generation,
    time: row.time,
  };
}

export interface CommitColumns extends GraphColumns {
  external_id: string | null;
  inline: Buffer | null;
  body: Buffer;
}

/** @param lenient as of {@link unpackInline} */
export function commitOf(row: CommitColumns, lenient = false): CommitRecord {
  const node = graphNodeOf(row);
  return {
    ...node,
    externalId: row.external_id,
    inline: unpackInline(row.inline, node.id, lenient),
    body: row.body,
  };
}

export interface RefColumns {
  ref: number;
  name: string;
  /** Empty for a deleted ref: SQL's hex() of NULL. */
  id: ObjectId | "";
  seq: number;
  max_step: number;
  incarnation: string;
  log_hash: ObjectId;
}

export function refOf(row: RefColumns): RefRow {
  return {
    name: row.name,
    id: row.id === "" ? null : row.id,
    seq: row.seq,
    logHash: row.log_hash,
    incarnation: row.incarnation,
    maxStep: row.max_step,
  };
}

export interface WorkflowColumns {
  wf: number;
  id: string;
  classification: WorkflowRecord["classification"];
  storage_region: string | null;
  retention_policy: string | null;
  isolation: string;
  created_at: number;
  completed_at: number | null;
}

export function workflowOf(row: WorkflowColumns): WorkflowRecord {
  return {
    id: row.id,
    classification: row.classification,
    storageRegion: row.storage_region,
    retentionPolicy: row.retention_policy,
    isolation: row.isolation,
    createdAt: row.created_at,
    completedAt: row.completed_at,
  };
}
