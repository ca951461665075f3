import { isAgstateError } from "../../core/errors.js";
import {
  OBJECT_ID_BYTES,
  OBJECT_ID_HEX_LENGTH,
  type ObjectId,
  objectIdAt,
} from "../../core/ids.js";
import type {
  Below,
  CommitRecord,
  GraphNode,
  RefRow,
  StoredObject,
  WorkflowRecord,
} from "../port.js";
import { unpackInline } from "../rows/inline.js";
import { knownObject, type ObjectRow, objectOf } from "../rows/objects.js";

export interface CommitColumns {
  readonly id: string;
  readonly parents: string;
  readonly generation: string;
  readonly time: string;
  readonly external_id: string | null;
  readonly inline: Buffer | null;
  readonly body: Buffer;
}

/** @param lenient as of `unpackInline` */
export function commitOf(row: CommitColumns, lenient = false): CommitRecord {
  return {
    id: row.id as ObjectId,
    parents: splitIds(row.parents),
    generation: Number(row.generation),
    time: Number(row.time),
    externalId: row.external_id,
    inline: unpackInline(row.inline, row.id, lenient),
    body: row.body,
  };
}

/** A row of a commit, whose kind is null, or of an object. */
export type BelowColumns = CommitColumns & {
  readonly [Key in keyof ObjectRow]: Key extends "type" | "kind" | "encoding"
    ? ObjectRow[Key] | null
    : ObjectRow[Key];
};

/** Takes commits and objects apart; rows that no version writes are left out. */
export function belowOf(rows: readonly BelowColumns[]): Below {
  const commits: CommitRecord[] = [];
  const objects: StoredObject[] = [];
  for (const row of rows) {
    try {
      if (row.kind === null) commits.push(commitOf(row));
      else objects.push(objectOf(knownObject(row as ObjectRow)));
    } catch (error) {
      if (!isAgstateError(error, "CORRUPT_OBJECT")) throw error;
    }
  }
  return { commits, objects };
}

/** Ids in hex, one after the other. */
export function splitIds(hex: string): ObjectId[] {
  const ids: ObjectId[] = [];
  for (let at = 0; at + OBJECT_ID_HEX_LENGTH <= hex.length; at += OBJECT_ID_HEX_LENGTH) {
    ids.push(hex.slice(at, at + OBJECT_ID_HEX_LENGTH) as ObjectId);
  }
  return ids;
}

/** Reads what the function `read_graph` answers. */
export function graphOf(packed: Buffer | null): GraphNode[] {
  const nodes: GraphNode[] = [];
  for (let at = 0; packed !== null && at < packed.length; ) {
    const generation = Number(packed.readBigInt64BE(at));
    const time = Number(packed.readBigInt64BE(at + 8));
    const count = packed.readInt32BE(at + 16);
    const id = objectIdAt(packed, at + 20);
    at += 20 + OBJECT_ID_BYTES;
    const parents: ObjectId[] = [];
    for (let i = 0; i < count; i++, at += OBJECT_ID_BYTES) parents.push(objectIdAt(packed, at));
    nodes.push({ id, parents, generation, time });
  }
  return nodes;
}

export interface RefColumns {
  readonly name: string;
  readonly id: string | null;
  readonly seq: string;
  readonly max_step: string;
  readonly incarnation: string;
  readonly log_hash: string;
}

export function refOf(row: RefColumns): RefRow {
  return {
    name: row.name,
    id: row.id as ObjectId | null,
    seq: Number(row.seq),
    logHash: row.log_hash as ObjectId,
    incarnation: row.incarnation,
    maxStep: Number(row.max_step),
  };
}

export interface WorkflowColumns {
  readonly id: string;
  readonly classification: string;
  readonly storage_region: string | null;
  readonly retention_policy: string | null;
  readonly isolation: string;
  readonly created_at: string;
  readonly completed_at: string | null;
}

export function workflowOf(row: WorkflowColumns): WorkflowRecord {
  return {
    id: row.id,
    classification: row.classification as WorkflowRecord["classification"],
    storageRegion: row.storage_region,
    retentionPolicy: row.retention_policy,
    isolation: row.isolation,
    createdAt: Number(row.created_at),
    completedAt: row.completed_at === null ? null : Number(row.completed_at),
  };
}
