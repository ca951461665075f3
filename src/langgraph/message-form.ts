import { hasOwn, isJsonObject, type JsonObject, type JsonValue, setOwn } from "../core/json.js";

/** Where LangChain's messages say that they are at home. */
export const MESSAGES: readonly string[] = ["langchain_core", "messages"];

const [OBJECTS, LISTS] = [
  ["additional_kwargs", "response_metadata"],
  ["tool_calls", "invalid_tool_calls"],
] as const;

/** By class, fields that every message has and that are mostly empty: they are left out when they are. */
const OFTEN_EMPTY: Readonly<Record<string, readonly string[]>> = {
  AIMessage: [...OBJECTS, ...LISTS],
  ChatMessage: OBJECTS,
  FunctionMessage: OBJECTS,
  HumanMessage: OBJECTS,
  SystemMessage: OBJECTS,
  ToolMessage: OBJECTS,
};

/** The key under which a stored value says what it is, where it is not the JSON that it looks like. */
export const TAG = "$agstate";

/**
 * A message as it is stored: its class under the tag, beside its fields but those that are empty and often are.
 * So a message's text is at `/content`, and lists of messages can be merged by `/id`.
 */
export interface MessageForm extends JsonObject {
  readonly [TAG]: string;
}

/** The fields that are left out of a class's form where they are empty; none of a class that has no form. */
export function oftenEmpty(name: string): readonly string[] {
  return hasOwn(OFTEN_EMPTY, name) ? (OFTEN_EMPTY[name] as readonly string[]) : [];
}

/** Whether a field that is left out is a list. */
export function isListField(field: string): boolean {
  return (LISTS as readonly string[]).includes(field);
}

/**
 * The form of what LangGraph's own serializer wrote of a message; undefined of anything that `messagePayload`
 * would not make of it again.
 */
export function messageForm(payload: JsonValue): MessageForm | undefined {
  if (!isJsonObject(payload) || Object.keys(payload).length !== 4) return undefined;
  const { lc, type, id, kwargs } = payload;
  if (lc !== 1 || type !== "constructor" || !Array.isArray(id) || !isJsonObject(kwargs))
    return undefined;
  const [name] = id.slice(MESSAGES.length);
  if (typeof name !== "string" || id.length !== MESSAGES.length + 1) return undefined;
  if (!MESSAGES.every((part, i) => id[i] === part)) return undefined;
  const empties = oftenEmpty(name);
  if (empties.length === 0 || !empties.every((field) => hasOwn(kwargs, field))) return undefined;
  if (hasOwn(kwargs, TAG)) return undefined;
  const form: Record<string, JsonValue> & { [TAG]: string } = { [TAG]: name };
  for (const key of Object.keys(kwargs)) {
    const value = kwargs[key] as JsonValue;
    if (!empties.includes(key) || !isEmpty(key, value)) setOwn(form, key, value);
  }
  return form;
}

/** Whether a stored value is a message's form. */
export function isMessageForm(stored: JsonObject): stored is MessageForm {
  const name = stored[TAG];
  return typeof name === "string" && oftenEmpty(name).length > 0;
}

/** What LangGraph's own serializer writes of a message, made from its form. */
export function messagePayload(form: MessageForm): JsonObject {
  const { [TAG]: name } = form;
  const kwargs: Record<string, JsonValue> = {};
  for (const key of Object.keys(form)) {
    if (key !== TAG) setOwn(kwargs, key, form[key] as JsonValue);
  }
  for (const key of oftenEmpty(name)) {
    if (!hasOwn(kwargs, key)) kwargs[key] = isListField(key) ? [] : {};
  }
  return { lc: 1, type: "constructor", id: [...MESSAGES, name], kwargs };
}

function isEmpty(field: string, value: JsonValue): boolean {
  if (isListField(field)) return Array.isArray(value) && value.length === 0;
  return isJsonObject(value) && Object.keys(value).length === 0;
}
