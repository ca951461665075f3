import type {
  ChannelVersions,
  Checkpoint,
  CheckpointMetadata,
} from "@langchain/langgraph-checkpoint";
import { AgstateError } from "../core/errors.js";
import { hasOwn, isJsonObject, type JsonObject, type JsonValue } from "../core/json.js";
import { isOneLine, quoteForMessage } from "../core/names.js";
import type { LoadedCommit } from "../objects/commit-reader.js";

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

const NOTE = /(?:^|\n)Checkpoint-Namespace: (".*")\nCheckpoint-Epoch: ([0-9a-f]{32})$/;

/** The message of a checkpoint's commit: what LangGraph did, and its note. */
export function messageOf(metadata: CheckpointMetadata | undefined, note: CheckpointNote): string {
  const { source, step } = metadata ?? {};
  const said = `${source ?? "checkpoint"}, step ${step ?? "unknown"}`;
  const title = isOneLine(said) && said.isWellFormed() && said.length < 100 ? said : "checkpoint";
  return `${title}\n\nCheckpoint-Namespace: ${JSON.stringify(note.namespace)}\nCheckpoint-Epoch: ${note.epoch}`;
}

/** The note of a checkpoint's commit; undefined of any other commit. */
export function noteOf(commit: LoadedCommit): CheckpointNote | undefined {
  const { externalId, message, root } = commit;
  // Others may give their commits such an id and message, but no frame.
  if (externalId === undefined || root.checkpoint === undefined) return undefined;
  const match = NOTE.exec(message);
  if (match === null) return undefined;
  return { namespace: JSON.parse(match[1] as string) as string, epoch: match[2] as string };
}

/** The frame of a record, which is stored apart from the channels. */
export function frameOf({ checkpoint, metadata, thread }: CheckpointFrame): CheckpointFrame {
  return { checkpoint, metadata, thread };
}

/** @throws AgstateError `CORRUPT_OBJECT` */
export function asFrame(value: JsonValue | undefined, commit: LoadedCommit): CheckpointFrame {
  const isFrame =
    isJsonObject(value) &&
    isJsonObject(value.checkpoint) &&
    isJsonObject(value.checkpoint.versions) &&
    hasOwn(value, "metadata") &&
    typeof value.thread === "string";
  if (isFrame) return value as unknown as CheckpointFrame;
  throw notCheckpoint(commit, "what it holds of one is something else");
}

/** @throws AgstateError `CORRUPT_OBJECT` */
export function asRecord(
  state: JsonValue | undefined,
  frame: CheckpointFrame,
  commit: LoadedCommit,
): CheckpointRecord {
  if (isJsonObject(state)) return { ...frameOf(frame), channels: state };
  throw notCheckpoint(commit, "its state is no object of channels");
}

function notCheckpoint(commit: LoadedCommit, why: string): AgstateError {
  return new AgstateError(
    "CORRUPT_OBJECT",
    `commit ${commit.id} says that it is checkpoint ${quoteForMessage(commit.externalId ?? "")}, but ${why}`,
    { id: commit.id },
  );
}
