import type {
  ChannelVersions,
  Checkpoint,
  CheckpointMetadata,
} from "@langchain/langgraph-checkpoint";
import { AgstateError } from "../core/errors.js";
import { hasOwn, isJsonObject, type JsonObject, type JsonValue } from "../core/json.js";
import { isOneLine, quoteForMessage } from "../core/names.js";
import type { LoadedCommit } from "../objects/commit-reader.js";

/** A checkpoint as the state of its commit; values are as `toStored` writes them. */
export interface CheckpointRecord {
  /** The values of channels that have one. */
  readonly channels: JsonObject;
  /** The checkpoint without its channels' values. */
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
  const match = commit.externalId === undefined ? null : NOTE.exec(commit.message);
  if (match === null) return undefined;
  return { namespace: JSON.parse(match[1] as string) as string, epoch: match[2] as string };
}

/** @throws AgstateError `CORRUPT_OBJECT` */
export function asRecord(state: JsonValue | undefined, commit: LoadedCommit): CheckpointRecord {
  const isRecord =
    isJsonObject(state) &&
    isJsonObject(state.channels) &&
    isJsonObject(state.checkpoint) &&
    isJsonObject(state.checkpoint.versions) &&
    hasOwn(state, "metadata") &&
    typeof state.thread === "string";
  if (isRecord) return state as unknown as CheckpointRecord;
  throw new AgstateError(
    "CORRUPT_OBJECT",
    `commit ${commit.id} says that it is checkpoint ${quoteForMessage(commit.externalId ?? "")}, but its state is no checkpoint`,
    { id: commit.id },
  );
}
