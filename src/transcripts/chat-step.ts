import { isJsonObject, type JsonObject, type JsonValue } from "../core/json.js";
import { normalize } from "../objects/normalize.js";
import { parseStrictJson } from "../objects/strict-json.js";
import type { StepToRecord } from "../store/types.js";
import { oneLine } from "./one-line.js";
import { kindOf, type Place } from "./place.js";
import type { ImportStep } from "./types.js";

interface ToolCall {
  readonly id?: string;
  readonly name: string;
  /** Parsed; the text itself when it is not JSON. */
  readonly arguments: JsonValue;
}

/** Who the messages of these roles come from; all others come from the agent. */
const OUTSIDERS = ["system", "developer", "user"];

/**
 * Turns the messages of one conversation, in order, into the steps of its import.
 *
 * An assistant's message is an `inference` step, a tool's an `execute` step:
 * what a tool does is unknown, and unknown takes the strictest class. Other
 * messages are commits without a step.
 *
 * The roles are those of the OpenAI chat format, with the older `function`; a
 * message of an unknown role is kept as it is.
 */
export class ChatSteps {
  /** The calls of tools seen so far, by id. */
  private readonly calls = new Map<string, ToolCall>();
  private count = 0;

  constructor(
    private readonly agent: string,
    /** Names an assistant's step when the message does not. */
    private readonly model: string,
  ) {}

  /** @throws AgstateError `INVALID_TRANSCRIPT` */
  next(message: JsonValue, place: Place): ImportStep {
    if (!isJsonObject(message)) throw place.error(`a message is an object, not ${kindOf(message)}`);
    const { role, content } = message;
    if (typeof role !== "string" || role === "") {
      throw place.error(
        `the role of the message is ${role === "" ? "empty" : kindOf(role)}; it must be a text such as "user"`,
      );
    }
    const plain = content === undefined || content === null || typeof content === "string";
    if (!plain && !Array.isArray(content)) {
      throw place
        .at("content")
        .error(`the content is ${kindOf(content)}; it must be a text, a list or null`);
    }
    const made = this.make(message, role, place);
    this.count++;
    return {
      message: oneLine(made.message),
      operations: [{ op: "append", path: "/messages", value: message }],
      ...(made.step === undefined ? {} : { step: made.step }),
      author: OUTSIDERS.includes(role) ? role : this.agent,
      place,
    };
  }

  private make(
    message: JsonObject,
    role: string,
    place: Place,
  ): { message: string; step?: StepToRecord } {
    if (role === "assistant") return this.assistant(message, place);
    if (role === "tool" || role === "function") return this.tool(message, place);
    return { message: `${role}: ${textOf(message.content)}` };
  }

  private assistant(message: JsonObject, place: Place): { message: string; step: StepToRecord } {
    const calls = toolCalls(message, place);
    for (const call of calls) if (call.id !== undefined) this.calls.set(call.id, call);
    const record = {
      name: textField(message, "name", place) ?? this.model,
      // The messages that the model saw, from the first to before this one.
      input: { messages: [0, this.count] },
      ...(message.content == null ? {} : { response: message.content }),
      ...(calls.length === 0 ? {} : { tool_calls: calls }),
    };
    const said =
      calls.length === 0
        ? textOf(message.content)
        : `call ${calls.map((call) => call.name).join(", ")}`;
    return { message: `assistant: ${said}`, step: { action: "inference", record } };
  }

  private tool(message: JsonObject, place: Place): { message: string; step: StepToRecord } {
    const id = textField(message, "tool_call_id", place);
    const call = id === undefined ? undefined : this.calls.get(id);
    const name = textField(message, "name", place) ?? call?.name ?? "tool";
    const record = {
      name,
      ...(call === undefined ? {} : { input: call.arguments }),
      output: message.content ?? null,
      ...(id === undefined ? {} : { tool_call_id: id }),
    };
    return {
      message: `tool ${name}: ${textOf(message.content)}`,
      step: { action: "execute", record },
    };
  }
}

/** A member that is a text or not there. */
function textField(message: JsonObject, key: string, place: Place): string | undefined {
  const value = message[key];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "string") {
    throw place.at(key).error(`${key} is ${kindOf(value)}; it must be a text`);
  }
  return value;
}

function toolCalls(message: JsonObject, place: Place): ToolCall[] {
  const list = message.tool_calls ?? [];
  if (!Array.isArray(list)) {
    throw place.at("tool_calls").error(`tool_calls is ${kindOf(list)}; it must be a list`);
  }
  const calls = list.map((call: JsonValue, i) => toolCall(call, place.at("tool_calls", i)));
  const legacy = message.function_call ?? undefined;
  if (legacy !== undefined)
    calls.push(calledFunction(legacy, undefined, place.at("function_call")));
  return calls;
}

function toolCall(call: JsonValue, place: Place): ToolCall {
  if (!isJsonObject(call)) throw place.error(`a tool call is an object, not ${kindOf(call)}`);
  return calledFunction(call.function ?? call.custom, textField(call, "id", place), place);
}

function calledFunction(
  called: JsonValue | undefined,
  id: string | undefined,
  place: Place,
): ToolCall {
  if (!isJsonObject(called) || typeof called.name !== "string") {
    throw place.error('the call names no function; it must have "function" with a "name"');
  }
  const given = called.arguments ?? called.input ?? null;
  return {
    ...(id === undefined ? {} : { id }),
    name: called.name,
    arguments: typeof given === "string" ? parseArguments(given) : given,
  };
}

/** Models write arguments that are not JSON, or not JSON that a state can hold; those stay text. */
function parseArguments(text: string): JsonValue {
  try {
    const value = parseStrictJson(text, "arguments");
    // The place of arguments in the step's record, for the limit of depth.
    return normalize(value, { maxBytes: text.length * 4, at: ["tool_calls", "0", "arguments"] });
  } catch {
    return text;
  }
}

/** The text of a content, for a commit message. */
function textOf(content: JsonValue | undefined): string {
  if (typeof content === "string") return content.trim() === "" ? "(empty)" : content;
  if (!Array.isArray(content)) return "(empty)";
  const parts = content.map((part: JsonValue) => {
    if (!isJsonObject(part)) return "";
    return typeof part.text === "string" ? part.text : `[${String(part.type ?? "part")}]`;
  });
  return parts.join(" ").trim() || "(empty)";
}
