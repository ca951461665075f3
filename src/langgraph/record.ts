import type {
  ChannelVersions,
  Checkpoint,
  CheckpointMetadata,
} from "@langchain/langgraph-checkpoint";
import { AgstateError } from "../core/errors.js";
import { hasOwn, isJsonObject, type JsonObject, type JsonValue } from "../core/json.js";
import { isOneLine, quoteForMessage } from "../core/names.js";
import { firstWithheld, isWithheld } from "../core/withheld.js";
import type { LoadedCommit } from "../objects/commit-reader.js";
import { refuseWithheld } from "../objects/reader.js";
import { workflowOf } from "./names.js";

/**
 * What a checkpoint is beside its channels' values: the `checkpoint` part of its commit's root tree. Values are
 * as `toStored` writes them.
 */
export interface CheckpointFrame {
  readonly checkpoint: {
    readonly v: number;
    readonly id: string;
    readonly ts: string;
    readonly versions: ChannelVersions;
    readonly seen: Checkpoint["versions_seen"];
    /** The checkpoint that it goes on from. */
    readonly parent?: string;
  };
  readonly metadata: JsonValue;
  readonly thread: string;
}

export interface CheckpointRecord extends CheckpointFrame {
  /** The values of channels that have one, as `toStored` writes them: the commit's state. */
  readonly channels: JsonObject;
}

/** A checkpoint's commit, and its record as it was normalised or decoded. */
export interface StoredCheckpoint {
  readonly commit: LoadedCommit;
  readonly record: CheckpointRecord;
}

/** What tells, without the state, that a commit is a checkpoint, and of which namespace. */
export interface CheckpointNote {
  readonly namespace: string;
  /** Drawn when the namespace gets its first checkpoint: what was deleted before has another. */
  readonly epoch: string;
}

/** Of the root namespace only the epoch is written. */
const NOTE = /(?:^|\n)(?:Checkpoint-Namespace: (".*")\n)?Checkpoint-Epoch: ([0-9a-f]{16})$/;

/** How many random bytes an epoch has. */
export const EPOCH_BYTES = 8;

/** The message of a checkpoint's commit: what LangGraph did, and its note. */
export function messageOf(metadata: CheckpointMetadata | undefined, note: CheckpointNote): string {
  const { source, step } = metadata ?? {};
  const said = `${source ?? "checkpoint"}, step ${step ?? "unknown"}`;
  const title = isOneLine(said) && said.isWellFormed() && said.length < 100 ? said : "checkpoint";
  const { namespace, epoch } = note;
  const named = namespace === "" ? "" : `Checkpoint-Namespace: ${JSON.stringify(namespace)}\n`;
  return `${title}\n\n${named}Checkpoint-Epoch: ${epoch}`;
}

/** The note of a checkpoint's commit; undefined of any other commit. */
export function noteOf(commit: LoadedCommit): CheckpointNote | undefined {
  const { externalId, message, root } = commit;
  // Others may give their commits such an id and message, but no frame.
  if (externalId === undefined || root.checkpoint === undefined) return undefined;
  const match = NOTE.exec(message);
  if (match === null) return undefined;
  const [, namespace = '""', epoch = ""] = match;
  return { namespace: JSON.parse(namespace) as string, epoch };
}

/** A frame as it is stored, apart from the channels: without what its commit says. */
export function storedFrame({ checkpoint, metadata, thread }: CheckpointFrame): object {
  const { v, ts, versions, seen, parent } = checkpoint;
  return {
    checkpoint: { v, ts, versions, seen, ...(parent !== undefined && { parent }) },
    metadata,
    // The workflow's id, where that holds it as it is.
    ...(workflowOf(thread) !== thread && { thread }),
  };
}

/** @throws AgstateError `CORRUPT_OBJECT`; `ERASED`, `WITHHELD` when it is not told */
export function asFrame(value: JsonValue | undefined, commit: LoadedCommit): CheckpointFrame {
  const hidden = value === undefined ? null : firstWithheld(value);
  if (hidden !== null) throw refuseWithheld(hidden);
  const isFrame =
    isJsonObject(value) &&
    isJsonObject(value.checkpoint) &&
    isJsonObject(value.checkpoint.versions) &&
    hasOwn(value, "metadata");
  if (isFrame) {
    const { checkpoint, metadata, thread = commit.workflow } = value as unknown as CheckpointFrame;
    return { checkpoint: { ...checkpoint, id: commit.externalId as string }, metadata, thread };
  }
  throw notCheckpoint(commit, "what it holds of one is something else");
}

/** @throws AgstateError `CORRUPT_OBJECT`; `ERASED`, `WITHHELD` when none of its channels is told */
export function asRecord(
  state: JsonValue | undefined,
  frame: CheckpointFrame,
  commit: LoadedCommit,
): CheckpointRecord {
  if (isWithheld(state)) throw refuseWithheld(state);
  if (isJsonObject(state)) return { ...frame, channels: state };
  throw notCheckpoint(commit, "its state is no object of channels");
}

function notCheckpoint(commit: LoadedCommit, why: string): AgstateError {
  return new AgstateError(
    "CORRUPT_OBJECT",
    `commit ${commit.id} says that it is checkpoint ${quoteForMessage(commit.externalId ?? "")}, but ${why}`,
    { id: commit.id },
  );
}
