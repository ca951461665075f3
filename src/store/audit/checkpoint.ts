import {
  createHash,
  createPrivateKey,
  createPublicKey,
  type KeyObject,
  sign,
  verify,
} from "node:crypto";
import { AgstateError } from "../../core/errors.js";
import { isJsonObject, type JsonObject, type JsonValue } from "../../core/json.js";
import { canonicalText } from "../../objects/canonical.js";
import { parseStrictJson } from "../../objects/strict-json.js";
import type { Repository } from "../repository.js";

const TYPE = "agstate-audit-checkpoint";
const VERSION = 1;

/** Where a ref's log stood. */
export interface CheckpointRef {
  readonly name: string;
  /** The number of its last entry. */
  readonly seq: number;
  readonly incarnation: string;
  /** The hash of its last entry, and so of all before it. */
  readonly log: string;
}

/** What a checkpoint says: where all logs of a workflow stood at one moment, those of deleted refs included. */
export interface CheckpointStatement {
  readonly type: typeof TYPE;
  readonly v: number;
  /** The id that the store drew when it was made. */
  readonly store: string;
  readonly workflow: string;
  /** Milliseconds since the Unix epoch, by the signer's clock. */
  readonly time: number;
  /** Sorted by name. */
  readonly refs: readonly CheckpointRef[];
}

/** A statement, and an Ed25519 signature of the UTF-8 of its canonical JSON text. */
export interface AuditCheckpoint {
  readonly statement: CheckpointStatement;
  readonly signature: {
    readonly algorithm: "Ed25519";
    /** SHA-256 of the public key (SPKI, DER): tells keys apart, and proves nothing. */
    readonly key: string;
    /** Base64. */
    readonly value: string;
  };
}

/**
 * Signs where all logs of a workflow stand, in one snapshot of its refs.
 *
 * @param privateKey PEM, PKCS#8, Ed25519
 * @throws AgstateError `INVALID_ARGUMENT` for another key
 */
export async function signCheckpoint(
  { storage, workflow, context }: Repository,
  privateKey: string,
): Promise<AuditCheckpoint> {
  const key = keyOf("private", privateKey);
  const { storeId } = await storage.describe();
  const rows = await storage.readRefs(workflow, { prefix: "refs/", deleted: true });
  const statement: CheckpointStatement = {
    type: TYPE,
    v: VERSION,
    store: storeId,
    workflow,
    time: context.now(),
    refs: rows.map(({ name, seq, incarnation, logHash }) => ({
      name,
      seq,
      incarnation,
      log: logHash,
    })),
  };
  const value = sign(null, bytesOf(statement), key).toString("base64");
  const fingerprint = fingerprintOf(createPublicKey(key));
  return { statement, signature: { algorithm: "Ed25519", key: fingerprint, value } };
}

/** A checkpoint as a file has it: its canonical JSON text and a line feed. */
export function checkpointText(checkpoint: AuditCheckpoint): string {
  return `${canonicalText(checkpoint as unknown as JsonValue)}\n`;
}

/**
 * Reads a checkpoint and checks its signature: what comes back is what the holder of the private key has signed.
 *
 * @param given the text or the bytes of a checkpoint's file
 * @param publicKey PEM, SPKI, Ed25519
 * @throws AgstateError `CHECKPOINT_REFUSED` with `details.problem` `form` or `signature`; `INVALID_ARGUMENT` for a key
 *   that is none
 */
export function verifyAuditCheckpoint(
  given: string | Uint8Array,
  publicKey: string,
): CheckpointStatement {
  const key = keyOf("public", publicKey);
  const { statement, signature } = parse(given);
  const value = Buffer.from(signature.value, "base64");
  if (verify(null, bytesOf(statement), key, value)) return statement;
  const mine = fingerprintOf(key);
  throw refused(
    "signature",
    signature.key === mine
      ? "it was changed after it was signed"
      : `it was changed, or signed by another key (${signature.key.slice(0, 16)}) than yours (${mine.slice(0, 16)})`,
  );
}

/** Reads the whole form: what is not known must not be passed over in what somebody relies on. */
function parse(given: string | Uint8Array): AuditCheckpoint {
  let value: JsonValue;
  try {
    value = parseStrictJson(given, "the checkpoint");
  } catch (cause) {
    throw refused("form", `it is no JSON: ${(cause as Error).message}`, cause);
  }
  if (!hasMembers(value, ["statement", "signature"])) throw refused("form", "it has other members");
  const { statement, signature } = value;
  const signs =
    hasMembers(signature, ["algorithm", "key", "value"]) &&
    signature.algorithm === "Ed25519" &&
    typeof signature.key === "string" &&
    typeof signature.value === "string";
  if (!signs) throw refused("form", "its signature is of another form");
  if (isJsonObject(statement) && statement.type === TYPE && Number(statement.v) > VERSION) {
    throw refused("form", "a later version of agstate made it");
  }
  const says =
    hasMembers(statement, ["type", "v", "store", "workflow", "time", "refs"]) &&
    statement.type === TYPE &&
    statement.v === VERSION &&
    typeof statement.store === "string" &&
    typeof statement.workflow === "string" &&
    Number.isSafeInteger(statement.time) &&
    Array.isArray(statement.refs) &&
    statement.refs.every(isRef);
  if (!says) throw refused("form", "its statement is of another form");
  return value as unknown as AuditCheckpoint;
}

function isRef(value: JsonValue): boolean {
  return (
    hasMembers(value, ["name", "seq", "incarnation", "log"]) &&
    typeof value.name === "string" &&
    Number.isSafeInteger(value.seq) &&
    typeof value.incarnation === "string" &&
    typeof value.log === "string"
  );
}

function hasMembers(value: unknown, names: readonly string[]): value is JsonObject {
  return (
    isJsonObject(value) &&
    Object.keys(value).length === names.length &&
    names.every((name) => Object.hasOwn(value, name))
  );
}

function bytesOf(statement: CheckpointStatement): Buffer {
  return Buffer.from(canonicalText(statement as unknown as JsonValue));
}

function fingerprintOf(key: KeyObject): string {
  return createHash("sha256")
    .update(key.export({ type: "spki", format: "der" }))
    .digest("hex");
}

function keyOf(kind: "private" | "public", pem: string): KeyObject {
  const made = kind === "private" ? "openssl genpkey -algorithm ed25519" : "openssl pkey -pubout";
  let key: KeyObject;
  try {
    key = kind === "private" ? createPrivateKey(pem) : createPublicKey(pem);
  } catch (cause) {
    // Never with what was given: it may be a secret.
    throw new AgstateError(
      "INVALID_ARGUMENT",
      `that is no ${kind} key in PEM without a passphrase; ${made} makes one`,
      { key: kind },
      { cause },
    );
  }
  if (key.asymmetricKeyType === "ed25519") return key;
  throw new AgstateError(
    "INVALID_ARGUMENT",
    `the ${kind} key is of type ${key.asymmetricKeyType}; checkpoints are signed with Ed25519: ${made} makes one`,
    { key: kind, type: key.asymmetricKeyType },
  );
}

/** The error of a checkpoint that proves nothing about this workflow. */
export function refused(
  problem: "form" | "signature" | "store" | "workflow",
  why: string,
  cause?: unknown,
): AgstateError {
  return new AgstateError(
    "CHECKPOINT_REFUSED",
    `the checkpoint cannot be gone by: ${why}`,
    { problem },
    { cause },
  );
}
