import type { JsonObject } from "../core/json.js";
import type { StateOperation } from "../objects/draft/operations.js";
import type { StepToRecord } from "../store/types.js";
import type { Place } from "./place.js";

/** The transcript formats that can be read. */
export const TRANSCRIPT_FORMATS = ["messages", "swe-agent"] as const;

export type TranscriptFormat = (typeof TRANSCRIPT_FORMATS)[number];

/** What a file of transcripts holds, as commits to make. */
export interface Transcript {
  /** The file's name, for messages. */
  readonly file: string;
  /** At least one. */
  readonly conversations: readonly Conversation[];
}

export interface Conversation {
  /** The branch `agents/<agent>/<branch>` that it belongs on; unique in the transcript. */
  readonly name: { readonly agent: string; readonly branch: string };
  /** The state before the first step, which the first commit brings along. */
  readonly initial: JsonObject;
  /** At least one; each becomes one commit. */
  readonly steps: readonly ImportStep[];
  /** Where in the file it stands. */
  readonly place: Place;
}

export interface ImportStep {
  /** One line of at most 72 characters. */
  readonly message: string;
  readonly operations: readonly StateOperation[];
  /** Left out for what is not an agent's step, such as a user's message. */
  readonly step?: StepToRecord;
  readonly author: string;
  /** Where in the file it stands. */
  readonly place: Place;
}
