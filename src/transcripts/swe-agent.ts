import { isDeepStrictEqual } from "node:util";
import { hasOwn, isJsonObject, type JsonObject, type JsonValue } from "../core/json.js";
import { formatPointer } from "../core/json-pointer.js";
import type { StateOperation } from "../objects/draft/operations.js";
import { parseStrictJson } from "../objects/strict-json.js";
import { nameOfFile } from "./names.js";
import { oneLine } from "./one-line.js";
import { kindOf, Place } from "./place.js";
import type { Conversation, ImportStep } from "./types.js";

/** Whose branch a run of SWE-agent goes onto. */
const AGENT = "swe-agent";

/**
 * Reads one run of SWE-agent (a `.traj` file).
 *
 * The state holds the file's own members (environment, replay_config and the
 * like; `info`, which tells how the run ended, from the last commit on), the
 * members of each step's `state` (working_dir, open_file and the like) and
 * `messages`, the run's history, which grows by what each step adds. The prompts
 * in which the file repeats that history step by step are not stored.
 *
 * @throws AgstateError `INVALID_TRANSCRIPT`, `LIMIT_EXCEEDED`
 */
export function readSweAgent(text: string, file: string): Conversation[] {
  const place = new Place(file);
  if (text.trim() === "") throw place.error("the file is empty");
  const run = place.checking(() => parseStrictJson(text, "the file"));
  if (!isJsonObject(run) || !Array.isArray(run.trajectory)) {
    const hint = isJsonObject(run) && hasOwn(run, "messages") ? "; is its format messages?" : "";
    throw place.error(`a run of SWE-agent is an object with a list "trajectory"${hint}`);
  }
  const { trajectory, history, info, ...others } = run;
  const list = trajectory as readonly JsonValue[];
  if (list.length === 0) throw place.at("trajectory").error("the run has no steps");
  if (history !== undefined && history !== null && !Array.isArray(history)) {
    throw place.at("history").error(`the history is ${kindOf(history)}; it must be a list`);
  }
  const initial = { ...others, messages: [] };
  const reader = new RunReader(initial);
  const steps = list.map((step, i) => reader.next(step, place.at("trajectory", i)));
  const last = steps.at(-1) as ImportStep;
  const end = reader.end((history ?? []) as readonly JsonValue[], info);
  steps[steps.length - 1] = { ...last, operations: [...last.operations, ...end] };
  return [{ name: { agent: AGENT, branch: nameOfFile(file) }, initial, steps, place }];
}

/** Follows a run from step to step. */
class RunReader {
  /** The history so far, each message as it was when it came. */
  private messages: readonly JsonValue[] = [];
  /** What the steps' `state` said last. */
  private environment: JsonObject = {};

  constructor(private readonly initial: JsonObject) {}

  next(step: JsonValue, place: Place): ImportStep {
    if (!isJsonObject(step)) throw place.error(`a step is an object, not ${kindOf(step)}`);
    const { action, observation, thought, response, execution_time, ...more } = step;
    const { state, messages, query, ...extra } = more;
    if (typeof action !== "string") {
      throw place.error(`the action of the step is ${kindOf(action)}; it must be a text`);
    }
    const record = {
      ...extra,
      name: /\S+/.exec(action)?.[0] ?? "none",
      input: { action },
      ...given({ thought, response }),
      output: observation ?? null,
      ...given({ execution_time }),
    };
    const operations = [
      ...this.setEnvironment(readState(state, place.at("state")), place),
      ...this.grow(readPrompt(messages ?? query, place)),
    ];
    const said = typeof thought === "string" ? thought : "";
    return {
      message: oneLine(action.trim() === "" ? `(no action) ${said}` : action),
      operations,
      step: { action: "execute", record },
      author: AGENT,
      place,
    };
  }

  /** What the last step brings besides: the end of the history, and how the run ended. */
  end(history: readonly JsonValue[], info: JsonValue | undefined): StateOperation[] {
    const operations: StateOperation[] = [];
    // Where prompts are kept without their answers, only the history holds the last ones.
    const rest = history.slice(this.messages.length);
    if (rest.length > 0) operations.push({ op: "append", path: "/messages", values: rest });
    if (info !== undefined) operations.push({ op: "set", path: "/info", value: info });
    return operations;
  }

  /**
   * The edits that take `messages` on to a step's prompt.
   *
   * A prompt goes on from the one before and only shortens old observations in
   * place, so what is new is what lies behind the earlier length. A prompt that
   * lost old messages is matched at the last known message; one that fits
   * neither way begins anew, as after a restart of the run.
   */
  private grow(prompt: readonly JsonValue[] | undefined): StateOperation[] {
    if (prompt === undefined || prompt.length === 0) return [];
    const known = this.messages;
    let fresh: readonly JsonValue[] | undefined;
    if (prompt.length > known.length) {
      fresh = prompt.slice(known.length);
    } else {
      const last = known.at(-1);
      const at = prompt.findLastIndex((message) => isDeepStrictEqual(message, last));
      if (at >= 0) fresh = prompt.slice(at + 1);
    }
    if (fresh === undefined) {
      this.messages = prompt;
      return [{ op: "set", path: "/messages", value: prompt }];
    }
    if (fresh.length === 0) return [];
    this.messages = [...known, ...fresh];
    return [{ op: "append", path: "/messages", values: fresh }];
  }

  private setEnvironment(next: JsonObject | undefined, place: Place): StateOperation[] {
    if (next === undefined) return [];
    const before = this.environment;
    const operations: StateOperation[] = [];
    for (const [key, value] of Object.entries(next)) {
      if (hasOwn(this.initial, key) || key === "info") {
        throw place
          .at("state", key)
          .error(`the step's state has a member that the run has as well; rename one of them`);
      }
      if (hasOwn(before, key) && isDeepStrictEqual(before[key], value)) continue;
      operations.push({ op: "set", path: formatPointer([key]), value });
    }
    for (const key of Object.keys(before)) {
      if (!hasOwn(next, key)) operations.push({ op: "delete", path: formatPointer([key]) });
    }
    this.environment = next;
    return operations;
  }
}

/** A step's state; old versions wrote it as JSON in a text. */
function readState(state: JsonValue | undefined, place: Place): JsonObject | undefined {
  if (state === undefined || state === null || state === "") return undefined;
  const value =
    typeof state === "string" ? place.checking(() => parseStrictJson(state, "the state")) : state;
  if (!isJsonObject(value)) {
    throw place.error(`the state of the step is ${kindOf(value)}; it must be an object`);
  }
  return value;
}

/** The messages that a step's model saw; newer versions call them its query. */
function readPrompt(prompt: JsonValue | undefined, place: Place): readonly JsonValue[] | undefined {
  if (prompt === undefined || prompt === null) return undefined;
  if (!Array.isArray(prompt)) {
    throw place.error(`the messages of the step are ${kindOf(prompt)}; they must be a list`);
  }
  return prompt;
}

/** The members that are there. */
function given(members: Record<string, JsonValue | undefined>): JsonObject {
  return Object.fromEntries(
    Object.entries(members).filter(([, value]) => value !== undefined),
  ) as JsonObject;
}
