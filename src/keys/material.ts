import { createHmac, hkdfSync, randomBytes } from "node:crypto";
import type { ObjectId } from "../core/ids.js";
import { SUBJECT_TAG_BYTES } from "./sealed-form.js";
import { Siv } from "./siv.js";

/** How long a workflow's data key is, and each AES-SIV key, in bytes. */
const DATA_KEY_BYTES = 64;
const SUBJECT_SEED_BYTES = 32;
const SIV_KEY_BYTES = 64;
const SECRET_BYTES = 32;

export function newDataKey(): Buffer {
  return randomBytes(DATA_KEY_BYTES);
}

export function newSubjectSeed(): Buffer {
  return randomBytes(SUBJECT_SEED_BYTES);
}

export function newSecret(): Buffer {
  return randomBytes(SECRET_BYTES);
}

/** What a workflow's data key stands for: keys for one purpose each, by HKDF-SHA256 (RFC 5869). */
export interface WorkflowMaterial {
  readonly blobs: Siv;
  readonly rows: Siv;
  /** Keys the hashes of values. */
  readonly secret: Uint8Array;
  /** Wraps the seeds of subjects' keys. */
  readonly wrapping: Uint8Array;
}

export function workflowMaterial(workflow: string, dataKey: Uint8Array): WorkflowMaterial {
  const derive = (purpose: string, bytes: number) => derived(dataKey, workflow, purpose, bytes);
  const context = [Buffer.from(workflow)];
  return {
    blobs: new Siv(derive("blobs", SIV_KEY_BYTES), context),
    rows: new Siv(derive("rows", SIV_KEY_BYTES), context),
    secret: derive("hashes", SECRET_BYTES),
    wrapping: derive("subjects", SECRET_BYTES),
  };
}

/** The cipher of what belongs to one subject. Its seed is random, so that without it no other key leads to it. */
export function subjectCipher(workflow: string, tag: string, seed: Uint8Array): Siv {
  return new Siv(derived(seed, workflow, "subject", SIV_KEY_BYTES), [
    Buffer.from(workflow),
    Buffer.from(tag, "hex"),
  ]);
}

function derived(key: Uint8Array, workflow: string, purpose: string, bytes: number): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", key, workflow, `agstate/${purpose}/1`, bytes));
}

/** HMAC-SHA256 of a text, as 64 hex digits. */
export function keyedDigest(secret: Uint8Array, text: string): ObjectId {
  return createHmac("sha256", secret).update(text).digest("hex") as ObjectId;
}

/** What a subject's key is found by; it does not tell who that is. */
export function subjectTag(secret: Uint8Array, subject: string): string {
  return keyedDigest(secret, `subject\0${subject}`).slice(0, 2 * SUBJECT_TAG_BYTES);
}
