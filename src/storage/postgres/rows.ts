import { AgstateError } from "../../core/errors.js";
import {
  OBJECT_ID_BYTES,
  OBJECT_ID_HEX_LENGTH,
  type ObjectId,
  objectIdAt,
} from "../../core/ids.js";
import {
  type CommitRecord,
  ENCODING,
  type GraphNode,
  type RefRow,
  type StoredObject,
  type WorkflowRecord,
} from "../port.js";
import { TYPE_NUMBER, typeOf, unpackInline } from "../rows/inline.js";

export interface ObjectColumns {
  readonly type: number;
  readonly kind: number;
  readonly encoding: number;
  readonly id: string;
  readonly body: Buffer;
}

const KIND = { object: 0, tombstone: 1 } as const;

/** @throws AgstateError `CORRUPT_OBJECT` for a kind or type that no version writes */
export function knownObject(row: ObjectColumns): ObjectColumns {
  const { kind, type, id } = row;
  const known = kind === KIND.object || kind === KIND.tombstone;
  if (known && Object.values(TYPE_NUMBER).includes(type)) return row;
  throw new AgstateError(
    "CORRUPT_OBJECT",
    `object ${id} is of kind ${kind} and type ${type}, which no version writes; restore a backup`,
    { id, kind, type },
  );
}

export function objectOf(row: ObjectColumns): StoredObject {
  const id = row.id as ObjectId;
  const type = typeOf(row.type);
  if (row.kind === KIND.tombstone) return { id, type, tombstone: row.body };
  return row.encoding === ENCODING.plain
    ? { id, type, body: row.body }
    : { id, type, body: row.body, encoding: row.encoding };
}

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

/** Ids in hex, one after the other. */
function splitIds(hex: string): ObjectId[] {
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
}

export function workflowOf(row: WorkflowColumns): WorkflowRecord {
  return {
    id: row.id,
    classification: row.classification as WorkflowRecord["classification"],
    storageRegion: row.storage_region,
    retentionPolicy: row.retention_policy,
    isolation: row.isolation,
    createdAt: Number(row.created_at),
  };
}
