import { AgstateError } from "../../core/errors.js";
import type { ObjectId } from "../../core/ids.js";
import { isJsonObject, type JsonObject, type JsonValue } from "../../core/json.js";
import { decodeValue } from "../../objects/decode.js";
import { digestText } from "../../objects/hash.js";
import { AUDIT } from "../../refs/names.js";
import { appendRecord } from "../audit/record.js";
import { lineFrom } from "../line.js";
import type { Repository } from "../repository.js";
import type { ErasureKind, ErasureTarget } from "./types.js";

/** Where erasures are recorded: before anything changes, and when it is over, each as a commit on top of the one before. */
export const ERASURES_REF = `${AUDIT}erasures`;

/** The version of the record that this code writes. */
const RECORD_VERSION = 1;

/** How many records one call reads. */
const PAGE = 100;

/** `requested` is written before anything changes. */
export type ErasureStatus = "requested" | "done" | "partial" | "failed";

/** What an erasure did, as counts and names. */
export interface ErasureCounts {
  readonly heads: number;
  readonly objects: number;
  readonly inline: number;
  readonly pending: number;
  readonly bytes: number;
  readonly held: number;
  /** Names of holds, one after the other. */
  readonly holds: string;
  readonly residue: number;
  readonly unread: number;
}

/** An erasure as a commit's state keeps it: nothing of what is erased, and of the target only salted digests. */
export interface ErasureRecord {
  readonly v: number;
  readonly id: string;
  readonly kind: ErasureKind;
  readonly status: ErasureStatus;
  readonly salt: string;
  readonly targets: readonly string[];
  readonly by: string;
  readonly reason: string;
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
  /** Of a request, what is to go; of what came of it, what is left. */
  readonly objects: readonly string[];
  readonly erased?: ErasureCounts;
  /** The code of the error that ended it. */
  readonly error?: string;
}

/** A record as it was read, or null when it is of a version or a form that this code does not know. */
export function parseErasureRecord(value: JsonValue | undefined): ErasureRecord | null {
  if (!isJsonObject(value)) return null;
  const { v, id, kind, status, salt, targets, objects } = value;
  const known =
    typeof v === "number" &&
    v <= RECORD_VERSION &&
    [id, kind, status, salt].every((text) => typeof text === "string") &&
    Array.isArray(targets) &&
    Array.isArray(objects);
  return known ? (value as unknown as ErasureRecord) : null;
}

/** What a target is called where it must not be told: digests with a salt of their own. */
export function targetDigests(target: ErasureTarget, salt: string): string[] {
  const texts = "workflow" in target ? [""] : "paths" in target ? target.paths : [target.subject];
  const kind = kindOf(target);
  return texts.map((text) => digestText(`${salt}\0${kind}\0${text}`)).sort();
}

export function kindOf(target: ErasureTarget): ErasureKind {
  return "workflow" in target ? "workflow" : "paths" in target ? "paths" : "subject";
}

/**
 * Commits a record on top of those that are there.
 *
 * @throws AgstateError `REF_CONFLICT` when others were faster every time, and what the storage raises
 */
export async function writeErasure(
  repository: Repository,
  given: Omit<ErasureRecord, "v">,
): Promise<void> {
  const record: ErasureRecord = { v: RECORD_VERSION, ...given };
  const message = `erase: ${record.status} (request ${record.id})`;
  const value = record as unknown as JsonObject;
  const written = { value, actor: record.by, message };
  if ((await appendRecord(repository, ERASURES_REF, written)) !== null) return;
  throw new AgstateError(
    "REF_CONFLICT",
    `others write to ${ERASURES_REF} all the time, and without its record nothing is erased; try again`,
    { ref: ERASURES_REF },
  );
}

/** All records, the last one first. */
export async function* erasureRecords(
  repository: Repository,
): AsyncGenerator<ErasureRecord, void, undefined> {
  const row = await repository.refs.row(ERASURES_REF);
  if (row === undefined || row.id === null) return;
  for await (const { commit, objects } of lineFrom(repository, row.id, "state", PAGE)) {
    const link = commit.root.state;
    const record = parseErasureRecord(link && (await decodeValue(objects, link)));
    if (record !== null) yield record;
  }
}

/** What earlier erasures of the same target did not come to the end with. */
export async function leftBefore(
  repository: Repository,
  target: ErasureTarget,
): Promise<Set<ObjectId>> {
  const left = new Set<ObjectId>();
  for await (const record of erasureRecords(repository)) {
    const digests = targetDigests(target, record.salt);
    if (digests.join() !== [...record.targets].sort().join()) continue;
    if (record.status === "done") break;
    for (const id of record.objects) left.add(id as ObjectId);
  }
  return left;
}
