import type { Classification } from "../../core/classification.js";
import { AgstateError, isAgstateError } from "../../core/errors.js";
import { quoteForMessage } from "../../core/names.js";
import type { DataKeys, KeyState, SubjectRows } from "../../keys/data-keys.js";
import type { KeyContext, WrappedKey } from "../../keys/provider.js";
import type { KeyRows } from "../../keys/rows.js";
import { NoKeys, type WorkflowKeys } from "../../keys/workflow-keys.js";
import { type Keyed, parseDataPolicy } from "../../objects/data-policy.js";
import type { PendingRow, Storage, WorkflowRecord } from "../../storage/port.js";
import { type CheckedKeyOptions, GUARDED } from "./options.js";

/** What keys need of an open store. */
export interface KeySource {
  readonly storage: Storage;
  /** Undefined when the store was opened without keys. */
  readonly keys: CheckedKeyOptions | undefined;
}

/** What a data key is bound to, so that it is of no use for another workflow. */
function keyContext(workflow: string): KeyContext {
  return { agstate: "workflow-key", workflow };
}

/**
 * Opens the keys of a workflow, in one call to the storage, or in none where its row says that it has none. Without the
 * key that they need they are locked: what is encrypted is withheld, and nothing can be written.
 *
 * @param known those of an earlier opening, which become what there is now; what was unwrapped is not unwrapped again
 * @throws AgstateError `KEY_UNAVAILABLE` when who holds the key fails; `CORRUPT_OBJECT`, `UNSUPPORTED_ENCODING`
 */
export async function openKeys(
  source: KeySource,
  record: WorkflowRecord,
  known?: DataKeys,
): Promise<WorkflowKeys> {
  const { id: workflow } = record;
  const { keyed } = parseDataPolicy(record.isolation);
  if (keyed === "nothing") return new NoKeys(workflow);
  // What has ciphers is loaded for workflows that need them.
  const { HASH_SECRET, readKeyRows, WORKFLOW_KEY } = await import("../../keys/rows.js");
  const { DataKeys } = await import("../../keys/data-keys.js");
  const rows = await source.storage.readPending(workflow, [HASH_SECRET, WORKFLOW_KEY]);
  const read = readKeyRows(rows);
  if (read.wrapped !== null && read.destroyed === null && known?.hasUnwrapped(read.wrapped)) {
    return known;
  }
  const state = await stateOf(source, workflow, keyed, read);
  if (known === undefined) {
    return new DataKeys(workflow, keyed, state, subjectRows(source, workflow));
  }
  known.become(state);
  return known;
}

async function stateOf(
  source: KeySource,
  workflow: string,
  keyed: "hashes" | "payloads",
  { wrapped, secret, destroyed }: KeyRows,
): Promise<KeyState> {
  if (destroyed !== null) return { kind: "destroyed" };
  if (keyed === "hashes") {
    return secret === null ? { kind: "locked", keyName: null } : { kind: "hashes", secret };
  }
  if (wrapped === null) return { kind: "locked", keyName: null };
  const dataKey = await unwrap(source.keys, wrapped, workflow);
  if (dataKey === null) return { kind: "locked", keyName: wrapped.keyName };
  const { workflowMaterial } = await import("../../keys/material.js");
  return { kind: "open", material: workflowMaterial(workflow, dataKey), wrapped };
}

/**
 * Unwraps a workflow's data key; null without the key that wraps it.
 *
 * @throws AgstateError `KEY_UNAVAILABLE`
 */
export async function unwrap(
  keys: CheckedKeyOptions | undefined,
  wrapped: WrappedKey,
  workflow: string,
): Promise<Uint8Array | null> {
  if (keys === undefined) return null;
  const { keyName, version } = wrapped;
  const what = `unwrap the key of workflow ${quoteForMessage(workflow)} with ${quoteForMessage(keyName)}`;
  return asking(what, { keyName, version, workflow }, () =>
    keys.provider.unwrap(wrapped, keyContext(workflow)),
  );
}

/** Asks who holds the keys: whatever goes wrong there is told in one way. */
async function asking<T>(
  what: string,
  details: Readonly<Record<string, string>>,
  ask: () => Promise<T>,
): Promise<T> {
  try {
    return await ask();
  } catch (cause) {
    if (isAgstateError(cause)) throw cause;
    const said = cause instanceof Error ? cause.message : String(cause);
    throw new AgstateError(
      "KEY_UNAVAILABLE",
      `the key provider could not ${what}: ${said}`,
      details,
      { cause },
    );
  }
}

/** The keys of a workflow that is about to be created, and what is to be written with it. */
export interface FirstKeys {
  readonly keys: WorkflowKeys;
  /** Those of the subjects that were met come to it. */
  readonly rows: PendingRow[];
  /** What its declaration tells of them; null when nothing is encrypted. */
  readonly encryption: {
    readonly cipher: string;
    readonly keyName: string;
    readonly version: string;
  } | null;
  /** Encodes something with the keys of its subjects, which are made for it: nobody can have made others. */
  encode<T>(work: () => T): T;
}

/**
 * Makes the keys of a workflow that is about to be created: a data key where it is to be encrypted, else a secret for hashes
 * where its classification says so.
 *
 * @param hasPointers whether parts of it belong to other regions: hashes of these are keyed in any case
 * @throws AgstateError `KEY_UNAVAILABLE`
 */
export async function firstKeys(
  source: KeySource,
  workflow: string,
  classification: Classification,
  hasPointers: boolean,
): Promise<FirstKeys> {
  const { keys } = source;
  const encrypts = keys?.encrypt.has(classification) === true;
  if (!encrypts && !hasPointers && !GUARDED.has(classification)) {
    return {
      keys: new NoKeys(workflow),
      rows: [],
      encryption: null,
      encode: (work) => work(),
    };
  }
  const { DataKeys } = await import("../../keys/data-keys.js");
  const { newDataKey, newSecret, workflowMaterial } = await import("../../keys/material.js");
  const { hashSecretRow, workflowKeyRow } = await import("../../keys/rows.js");
  const made = (
    keyed: Keyed,
    state: KeyState,
    rows: PendingRow[],
    encryption: FirstKeys["encryption"],
  ): FirstKeys => {
    const own = new DataKeys(workflow, keyed, state, subjectRows(source, workflow));
    const encode = <T>(work: () => T) => own.encodingFirst(work, rows);
    return { keys: own, rows, encryption, encode };
  };
  if (!encrypts) {
    const secret = newSecret();
    return made("hashes", { kind: "hashes", secret }, [hashSecretRow(secret)], null);
  }
  const dataKey = newDataKey();
  const wrapped = await wrap(keys, keys.keyName, dataKey, workflow);
  const { keyName, version } = wrapped;
  const material = workflowMaterial(workflow, dataKey);
  const encryption = { cipher: "AES-SIV", keyName, version };
  return made(
    "payloads",
    { kind: "open", material, wrapped },
    [workflowKeyRow(wrapped)],
    encryption,
  );
}

/** @throws AgstateError `KEY_UNAVAILABLE` */
export async function wrap(
  keys: CheckedKeyOptions,
  keyName: string,
  dataKey: Uint8Array,
  workflow: string,
): Promise<WrappedKey> {
  const what = `wrap the key of workflow ${quoteForMessage(workflow)} with ${quoteForMessage(keyName)}`;
  return asking(what, { keyName, workflow }, () =>
    keys.provider.wrap(keyName, dataKey, keyContext(workflow)),
  );
}

function subjectRows({ storage }: KeySource, workflow: string): SubjectRows {
  return {
    read: (keys) => storage.readPending(workflow, keys),
    put: async (pending) => {
      await storage.write({ workflow, objects: [], moves: [], atomic: true, pending });
    },
  };
}
