import type { JsonValue } from "../core/json.js";
import { firstWithheld } from "../core/withheld.js";
import { canonicalText } from "../objects/canonical.js";
import { refuseWithheld } from "../objects/reader.js";

/** The version of the record that this code writes; it reads older ones and passes newer ones over. */
export const STEP_RECORD_VERSION = 1;

/** An error as it is kept and replayed: its stack would differ from run to run. */
export interface StepFailure {
  readonly name: string;
  readonly message: string;
  readonly code?: string;
}

/** Where in a durable run a step was asked for. */
export interface StepPlace {
  /** Which run of the branch. */
  readonly run: string;
  /** The names of the parallel parts that it is in, outermost first. */
  readonly scope: readonly string[];
  /** How many steps that are recorded had been asked for in this scope before. */
  readonly index: number;
}

/** What is kept of a step, at the boundary between agent and tool; not the state. */
export interface StepRecord {
  readonly v: number;
  readonly name: string;
  /** 1 at first; one more each time the tool is called again for the same number. */
  readonly attempt: number;
  readonly input?: JsonValue;
  readonly output?: JsonValue;
  /** The tool calls that a model asked for. */
  readonly toolCalls?: JsonValue;
  /** A model's response as it came, where the output is only a part of it. */
  readonly llmResponse?: JsonValue;
  readonly error?: StepFailure;
  /** Of a failed step: the tool was done, and only what came out could not be kept. It is not called again. */
  readonly effect?: "done";
  /** Milliseconds since the Unix epoch. */
  readonly startedAt: number;
  readonly completedAt?: number;
  readonly place?: StepPlace;
  /** The review by which it was let run. */
  readonly approval?: string;
  /** What it read outside that its result rests on. */
  readonly reliesOn?: readonly Reliance[];
}

/** Something outside that a step read, and what it was then. */
export interface Reliance {
  readonly type: string;
  readonly id: string;
  /** In the form of the type's checker; null when it is not known. */
  readonly version: string | null;
  /** Milliseconds since the Unix epoch. */
  readonly observedAt: number;
  /** As of a resource; left out, whoever hands the work off says it. */
  readonly tolerance?: JsonValue;
}

/** A record as it was read, or null when it is of a version or a form that this code does not know. */
export function parseStepRecord(value: JsonValue | null): StepRecord | null {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
  const record = value as unknown as Partial<StepRecord>;
  const known =
    typeof record.v === "number" &&
    record.v <= STEP_RECORD_VERSION &&
    typeof record.name === "string" &&
    typeof record.attempt === "number" &&
    typeof record.startedAt === "number";
  return known ? (record as StepRecord) : null;
}

/**
 * A value with its members in the one order in which it is kept, so that code which depends on their
 * order, as a text made of the value does, comes out on replay as it did at first.
 *
 * @throws AgstateError `ERASED`, `WITHHELD` when a part is not told: code that goes on with it would take that for what it got
 */
export function inKeptOrder<Value>(value: Value): Value {
  if (typeof value !== "object" || value === null) return value;
  const hidden = firstWithheld(value as JsonValue);
  if (hidden !== null) throw refuseWithheld(hidden);
  return JSON.parse(canonicalText(value as JsonValue)) as Value;
}

/** An error as it can be kept; whatever was thrown. */
export function failureOf(error: unknown): StepFailure {
  if (!(error instanceof Error)) return { name: "Error", message: String(error) };
  const { code } = error as { code?: unknown };
  return {
    name: error.name,
    message: error.message,
    ...(typeof code === "string" ? { code } : {}),
  };
}
