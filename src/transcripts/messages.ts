import { hasOwn, isJsonObject, type JsonObject, type JsonValue } from "../core/json.js";
import { parseStrictJson } from "../objects/strict-json.js";
import { ChatSteps } from "./chat-step.js";
import { ConversationNames } from "./names.js";
import { kindOf, Place } from "./place.js";
import type { Conversation } from "./types.js";

/** A JSON value of the file, and where it stands. */
interface Document {
  readonly value: JsonValue;
  readonly place: Place;
}

/**
 * Reads conversations in the OpenAI chat format.
 *
 * The text is one list of messages, one object with `messages`, a list of such
 * objects, or a line of JSON for each conversation. The other members of an
 * object (task_id, trial, reward and the like) stand in the state beside
 * `messages`, from the first commit on.
 *
 * @throws AgstateError `INVALID_TRANSCRIPT`, `LIMIT_EXCEEDED`
 */
export function readMessages(text: string, file: string): Conversation[] {
  const names = new ConversationNames(file);
  return documentsOf(text, file).flatMap((document) =>
    conversationsOf(document).map(({ value, place }) => toConversation(value, place, names)),
  );
}

/** One document a line when the first of several lines is JSON by itself, else the whole text. */
function documentsOf(text: string, file: string): Document[] {
  const lines = linesOf(text);
  const [first] = lines;
  if (first === undefined) throw new Place(file).error("the file is empty");
  if (lines.length === 1 || !isJson(first.text)) {
    const place = new Place(file);
    return [{ value: place.checking(() => parseStrictJson(text, "the file")), place }];
  }
  return lines.map(({ text: line, number }) => {
    const place = new Place(file, number);
    const value = place.checking(() => parseStrictJson(line, "the line", { line: number }));
    return { value, place };
  });
}

function linesOf(text: string): { text: string; number: number }[] {
  return text
    .split("\n")
    .map((line, i) => ({ text: line, number: i + 1 }))
    .filter((line) => line.text.trim() !== "");
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** A list of objects with `messages` is several conversations; anything else is one. */
function conversationsOf({ value, place }: Document): Document[] {
  if (!Array.isArray(value)) return [{ value, place }];
  const [first] = value;
  if (!isJsonObject(first) || !hasOwn(first, "messages")) return [{ value, place }];
  return value.map((one: JsonValue, i) => ({ value: one, place: place.at(i) }));
}

function toConversation(value: JsonValue, place: Place, names: ConversationNames): Conversation {
  const { messages, fields, at } = messagesOf(value, place);
  if (messages.length === 0) throw at.error("the conversation has no messages");
  const name = names.next(fields);
  const model = typeof fields.model === "string" ? fields.model : "assistant";
  const steps = new ChatSteps(name.agent, model);
  return {
    name,
    initial: { ...fields, messages: [] },
    steps: messages.map((message, i) => steps.next(message, at.at(i))),
    place,
  };
}

function messagesOf(
  value: JsonValue,
  place: Place,
): { messages: readonly JsonValue[]; fields: JsonObject; at: Place } {
  if (Array.isArray(value)) return { messages: value, fields: {}, at: place };
  if (!isJsonObject(value)) {
    throw place.error(
      `a conversation is a list of messages or an object with "messages", not ${kindOf(value)}`,
    );
  }
  const { messages, ...fields } = value;
  if (!Array.isArray(messages)) {
    const hint = hasOwn(value, "trajectory") ? "; is its format swe-agent?" : "";
    throw place.error(
      `"messages" of the conversation is ${kindOf(messages)}; it must be a list${hint}`,
    );
  }
  return { messages, fields, at: place.at("messages") };
}
