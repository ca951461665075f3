import { AgstateError } from "../../core/errors.js";
import { checkIdentity, checkReason, quoteForMessage } from "../../core/names.js";
import { DataKeys } from "../../keys/data-keys.js";
import type { WrappedKey } from "../../keys/provider.js";
import {
  type Destroyed,
  destroyedRow,
  KEYS,
  type KeyRows,
  readKeyRows,
  readSubjectRow,
  subjectRowKey,
  WORKFLOW_KEY,
  workflowKeyRow,
} from "../../keys/rows.js";
import { HOLDS } from "../../refs/names.js";
import { type AuditNote, writeEvent } from "../audit/record.js";
import type { Repository } from "../repository.js";
import { unwrap, wrap } from "./open.js";
import { checkKeyName } from "./options.js";

/** What a workflow's key is, as its rows tell; no key is needed to know it. */
export interface WorkflowKeyInfo {
  /** Null where the key is lost, or destroyed. */
  readonly keyName: string | null;
  readonly version: string | null;
  readonly destroyed: { readonly at: Date; readonly by: string } | null;
  /** Whether this store was opened with what it takes to read the workflow. */
  readonly readable: boolean;
}

export interface RotateKeyOptions {
  /** The key that wraps it from now on; default the one that does now, in its present version. */
  readonly to?: string;
  /** Who does it; default `agstate`. */
  readonly actor?: string;
}

export interface RotatedKey {
  readonly from: { readonly keyName: string; readonly version: string };
  readonly to: { readonly keyName: string; readonly version: string };
}

export interface DestroyKeyOptions {
  /** Whose key; left out, the workflow's, and with it all. */
  readonly subject?: string;
  /** Why, in one line. */
  readonly reason: string;
  /** Who does it; default `agstate`. */
  readonly actor?: string;
}

export interface DestroyedKey {
  /** The row that the key stood in. */
  readonly key: string;
  /** Whether there was one; the subject of one that never was is kept from being written of all the same. */
  readonly existed: boolean;
}

const REASON_MAX_BYTES = 500;
const KEPT = "a key is destroyed for a reason that the audit keeps";

/** What is known of a workflow's key; null where its payloads are not encrypted. */
export async function keyInfo(repository: Repository): Promise<WorkflowKeyInfo | null> {
  if (repository.keys.keyed !== "payloads") return null;
  const { wrapped, destroyed } = await rowsOf(repository);
  return {
    keyName: destroyed === null ? (wrapped?.keyName ?? null) : null,
    version: destroyed === null ? (wrapped?.version ?? null) : null,
    destroyed: destroyed && { at: new Date(destroyed.at), by: destroyed.by },
    readable: destroyed === null && repository.keys.withheld === null,
  };
}

/**
 * Wraps a workflow's data key anew, under the present version of a key. No object changes, and nobody who has the workflow
 * open notices. It is recorded first.
 *
 * @throws AgstateError `INVALID_ARGUMENT` for a workflow that is not encrypted, `ERASED`, `KEY_UNAVAILABLE`
 */
export async function rotateKey(
  repository: Repository,
  options: RotateKeyOptions,
): Promise<RotatedKey> {
  const { workflow, context } = repository;
  const actor = checkIdentity("actor", options.actor ?? "agstate");
  const before = await openRow(repository);
  const { source } = context.keys;
  const dataKey = await unwrap(source.keys, before, workflow);
  if (dataKey === null || source.keys === undefined) throw notAtHand(workflow, before.keyName);
  const to = options.to === undefined ? before.keyName : checkKeyName(options.to);
  const after = await wrap(source.keys, to, dataKey, workflow);
  await record(repository, {
    kind: "key-rotated",
    actor,
    says: `Wrap the key of the workflow by ${after.keyName} ${after.version}`,
    facts: {
      fromKey: before.keyName,
      fromVersion: before.version,
      toKey: after.keyName,
      toVersion: after.version,
    },
  });
  await repository.refs.apply({ updates: [], pending: [workflowKeyRow(after)] });
  // Somebody may have destroyed it since it was read: then it must not be back.
  const { destroyed } = await rowsOf(repository);
  if (destroyed !== null) {
    await dropKey(repository, WORKFLOW_KEY, [KEYS], destroyed);
    throw gone(workflow);
  }
  return { from: named(before), to: named(after) };
}

/**
 * Destroys a key, which erases what it encrypted, wherever that is: it is recorded first, then the row goes, and another stays in its
 * place so that none comes after it. Whoever has the key in memory, in another process, still reads until it ends.
 *
 * @throws AgstateError `INVALID_ARGUMENT` for a workflow that is not encrypted, `HELD` while anything of the workflow is held,
 *   `ERASED` when the workflow's key is gone already, `KEY_UNAVAILABLE` of a subject without the workflow's key
 */
export async function destroyKey(
  repository: Repository,
  options: DestroyKeyOptions,
): Promise<DestroyedKey> {
  const { workflow, context, keys } = repository;
  const actor = checkIdentity("actor", options.actor ?? "agstate");
  const reason = checkReason(options.reason, KEPT, REASON_MAX_BYTES);
  const { subject } = options;
  if (keys.keyed !== "payloads" || !(keys instanceof DataKeys)) throw notEncrypted(workflow);
  await refuseHeld(repository);
  const tag = subject === undefined ? null : keys.tagOf(subject);
  const key = tag === null ? WORKFLOW_KEY : subjectRowKey(tag);
  const [row] = await repository.storage.readPending(workflow, [key]);
  const existed =
    tag === null
      ? (await rowsOf(repository)).destroyed === null
      : row !== undefined && readSubjectRow(row).wrapped !== null;
  await record(repository, {
    kind: "key-destroyed",
    actor,
    says: tag === null ? "Destroy the key of the workflow" : "Destroy the key of a subject",
    facts: { key, why: reason },
  });
  const destroyed = { at: context.now(), by: actor };
  await dropKey(repository, key, tag === null ? [KEYS] : [key], destroyed);
  keys.forget(tag);
  context.forget();
  return { key, existed };
}

/** One transaction: the key goes, and what says so stays. */
async function dropKey(
  repository: Repository,
  key: string,
  dropPending: readonly string[],
  destroyed: Destroyed,
): Promise<void> {
  const pending = [destroyedRow(key, destroyed)];
  await repository.refs.apply({ updates: [], dropPending, pending });
}

async function rowsOf({ storage, workflow }: Repository): Promise<KeyRows> {
  return readKeyRows(await storage.readPending(workflow, [WORKFLOW_KEY]));
}

async function openRow(repository: Repository): Promise<WrappedKey> {
  const { workflow } = repository;
  if (repository.keys.keyed !== "payloads") throw notEncrypted(workflow);
  const { wrapped, destroyed } = await rowsOf(repository);
  if (destroyed !== null) throw gone(workflow);
  if (wrapped === null) throw notAtHand(workflow, null);
  return wrapped;
}

async function refuseHeld(repository: Repository): Promise<void> {
  const holds = await repository.refs.list(HOLDS);
  if (holds.length === 0) return;
  const names = holds.map(({ name }) => name.slice(HOLDS.length));
  throw new AgstateError(
    "HELD",
    `no key of workflow ${quoteForMessage(repository.workflow)} is destroyed while something is held: ${names.map(quoteForMessage).slice(0, 5).join(", ")}${names.length > 5 ? ` and ${names.length - 5} more` : ""}; release it first (agstate hold release)`,
    { workflow: repository.workflow, holds: names },
  );
}

async function record(repository: Repository, note: AuditNote): Promise<void> {
  if (await writeEvent(repository, note, 1)) return;
  throw new AgstateError(
    "REF_CONFLICT",
    "others write to the audit all the time, and without its record no key is changed; try again",
    { workflow: repository.workflow },
  );
}

function named({ keyName, version }: WrappedKey): { keyName: string; version: string } {
  return { keyName, version };
}

function notEncrypted(workflow: string): AgstateError {
  return new AgstateError(
    "INVALID_ARGUMENT",
    `workflow ${quoteForMessage(workflow)} is not encrypted: whether it is, is decided when it is created`,
    { workflow },
  );
}

function gone(workflow: string): AgstateError {
  return new AgstateError(
    "ERASED",
    `the key of workflow ${quoteForMessage(workflow)} was destroyed; agstate audit tells when and by whom`,
    { workflow },
  );
}

function notAtHand(workflow: string, keyName: string | null): AgstateError {
  return new AgstateError(
    "KEY_UNAVAILABLE",
    keyName === null
      ? `the key of workflow ${quoteForMessage(workflow)} is lost; restore a backup`
      : `key ${quoteForMessage(keyName)}, which wraps that of workflow ${quoteForMessage(workflow)}, is not at hand; give --keys, or AGSTATE_KEYS`,
    { workflow, keyName },
  );
}
