import { AgstateError } from "../core/errors.js";
import { isJsonObject, type JsonValue } from "../core/json.js";
import { quoteForMessage } from "../core/names.js";
import { openPending, sealPending } from "../objects/pending.js";
import type { PendingRow } from "../storage/port.js";
import type { WrappedKey } from "./provider.js";

/**
 * Where a workflow's keys are: pending rows, which stand beside its history, so that a key can be wrapped anew, or go,
 * without any object being touched.
 */
export const KEYS = "keys/";
/** The wrapped data key; under index 0 of the same key, that it was destroyed. */
export const WORKFLOW_KEY = "keys/workflow";
/** A secret that keys hashes alone, in clear. */
export const HASH_SECRET = "keys/hmac";
const SUBJECT_KEYS = "keys/subject/";

export function subjectRowKey(tag: string): string {
  return SUBJECT_KEYS + tag;
}

export function isKeyRow({ key }: PendingRow): boolean {
  return key.startsWith(KEYS);
}

/** Of an index below 0 the last row stays: a key that is wrapped anew takes the place of the former. */
const REPLACED = -1;
/** Of this index the first row stays: a seed of which others may hold ciphertext, and that a key is destroyed. */
const FIRST_STAYS = 0;

const VERSION = 1;

/** That a key is no more, and since when. */
export interface Destroyed {
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
  readonly by: string;
}

export function workflowKeyRow({ keyName, version, wrapped }: WrappedKey): PendingRow {
  const value = { v: VERSION, keyName, version, wrapped: base64(wrapped) };
  return sealPending(WORKFLOW_KEY, REPLACED, value);
}

export function hashSecretRow(secret: Uint8Array): PendingRow {
  return sealPending(HASH_SECRET, FIRST_STAYS, { v: VERSION, secret: base64(secret) });
}

export function subjectRow(tag: string, wrapped: Uint8Array): PendingRow {
  const value = { v: VERSION, wrapped: base64(wrapped) };
  return sealPending(subjectRowKey(tag), FIRST_STAYS, value);
}

/** What stands in the place of a key that was destroyed; no key comes after it. */
export function destroyedRow(key: string, { at, by }: Destroyed): PendingRow {
  return sealPending(key, FIRST_STAYS, { v: VERSION, destroyed: { at, by } });
}

/** The keys of a workflow as its rows have them. */
export interface KeyRows {
  readonly wrapped: WrappedKey | null;
  readonly secret: Uint8Array | null;
  /** Of the workflow's key. */
  readonly destroyed: Destroyed | null;
}

/**
 * Reads the rows of a workflow's own keys.
 *
 * @throws AgstateError `CORRUPT_OBJECT`; `UNSUPPORTED_ENCODING` for what a newer version wrote
 */
export function readKeyRows(rows: readonly PendingRow[]): KeyRows {
  let wrapped: WrappedKey | null = null;
  let secret: Uint8Array | null = null;
  let destroyed: Destroyed | null = null;
  for (const row of rows) {
    const said = contentOf(row);
    if (row.key === HASH_SECRET) secret = bytesOf(row, said.secret);
    else if (row.key !== WORKFLOW_KEY) continue;
    else if (isJsonObject(said.destroyed)) destroyed = said.destroyed as unknown as Destroyed;
    else {
      const { keyName, version } = said;
      if (typeof keyName !== "string" || typeof version !== "string") throw damaged(row);
      wrapped = { keyName, version, wrapped: bytesOf(row, said.wrapped) };
    }
  }
  return { wrapped, secret, destroyed };
}

/** A subject's wrapped seed, or that it was destroyed. */
export function readSubjectRow(row: PendingRow): {
  readonly tag: string;
  readonly wrapped: Uint8Array | null;
} {
  const said = contentOf(row);
  const wrapped = isJsonObject(said.destroyed) ? null : bytesOf(row, said.wrapped);
  return { tag: row.key.slice(SUBJECT_KEYS.length), wrapped };
}

function contentOf(row: PendingRow): { readonly [name: string]: JsonValue } {
  const value = openPending(row);
  if (!isJsonObject(value) || typeof value.v !== "number") throw damaged(row);
  if (value.v <= VERSION) return value;
  throw new AgstateError(
    "UNSUPPORTED_ENCODING",
    `the pending row ${quoteForMessage(row.key)} is of version ${value.v}; this version knows only ${VERSION}, use a newer agstate`,
    { key: row.key, version: value.v },
  );
}

function bytesOf(row: PendingRow, text: JsonValue | undefined): Uint8Array {
  if (typeof text !== "string") throw damaged(row);
  return Buffer.from(text, "base64");
}

function damaged(row: PendingRow): AgstateError {
  return new AgstateError(
    "CORRUPT_OBJECT",
    `the pending row ${quoteForMessage(row.key)}, index ${row.index}, should hold a key, but does not; restore a backup`,
    { key: row.key, index: row.index },
  );
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}
