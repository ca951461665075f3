import {
  AIMessage,
  AIMessageChunk,
  ChatMessage,
  ChatMessageChunk,
  FunctionMessage,
  FunctionMessageChunk,
  HumanMessage,
  HumanMessageChunk,
  SystemMessage,
  SystemMessageChunk,
  ToolMessage,
  ToolMessageChunk,
} from "@langchain/core/messages";
import { isJsonObject, type JsonObject, type JsonValue } from "../core/json.js";
import { isUndefined } from "./messages.js";

interface MessageClass {
  readonly prototype: object;
  lc_name(): string;
}

/** What a class may define to be written in another way than by its constructor's fields. */
const WAYS = ["toJSON", "lc_id", "lc_attributes", "lc_secrets"];

/** The classes whose instances may be known to be unchanged, by their prototypes. */
const KNOWN: ReadonlyMap<object, MessageClass> = new Map(
  [
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    ChatMessageChunk,
    FunctionMessage,
    FunctionMessageChunk,
    HumanMessage,
    HumanMessageChunk,
    SystemMessage,
    SystemMessageChunk,
    ToolMessage,
    ToolMessageChunk,
  ]
    .filter((known: MessageClass) => isPlain(known))
    .map((known) => [known.prototype, known] as const),
);

/** Whether only LangChain's base class says how instances are written. */
function isPlain(known: MessageClass): boolean {
  return WAYS.every((way) => {
    let owners = 0;
    for (let at = known.prototype; at !== null; at = Object.getPrototypeOf(at))
      if (Object.hasOwn(at, way)) owners++;
    return owners === 1;
  });
}

const TO_JSON: unknown = AIMessage.prototype.toJSON;

/** What of a message LangChain's `toJSON` goes by. */
interface Message {
  readonly [field: string]: unknown;
  readonly constructor: unknown;
  readonly lc_serializable?: unknown;
  readonly lc_namespace?: unknown;
  readonly lc_kwargs?: unknown;
  readonly toJSON?: unknown;
}

/**
 * Whether LangGraph's own serializer would certainly write a message as this again; it takes a twentieth of
 * the time that writing it takes.
 *
 * What is written are the fields that the constructor was given, with the values that they have now. Nothing
 * is kept to compare them with: of plain data, what was written says what it was. So a message may have been
 * changed in place, in any depth, and is found out. Where anything is not as messages usually are (another class,
 * a date, a getter of the class, an instance among the fields, a key that is written under another name), the
 * answer is no.
 *
 * @param written what the serializer wrote of this very message before
 */
export function isStillWritten(message: object, written: JsonValue | undefined): boolean {
  const known = KNOWN.get(Object.getPrototypeOf(message));
  if (known === undefined || !isJsonObject(written)) return false;
  const its = message as Message;
  if (its.toJSON !== TO_JSON || its.constructor !== known || its.lc_serializable !== true)
    return false;
  const given = its.lc_kwargs;
  if (Object.hasOwn(message, "lc_id") || !isPlainObject(given)) return false;
  const { lc, type, id, kwargs } = written;
  if (lc !== 1 || type !== "constructor" || !isJsonObject(kwargs) || countOf(written) !== 4)
    return false;
  if (!isId(id, its.lc_namespace, known)) return false;
  let fields = 0;
  for (const key in given) {
    // A field that the message lacks is looked for in its class, and then in what the constructor was given.
    if (!Object.hasOwn(message, key) || !Object.hasOwn(kwargs, key)) return false;
    if (!isAsWritten(its[key], kwargs[key] as JsonValue)) return false;
    fields++;
  }
  return fields === countOf(kwargs);
}

function isId(id: JsonValue | undefined, namespace: unknown, known: MessageClass): boolean {
  if (!Array.isArray(id) || !Array.isArray(namespace)) return false;
  const length = namespace.length;
  if (id.length !== length + 1 || id[length] !== known.lc_name()) return false;
  for (let i = 0; i < length; i++) if (id[i] !== namespace[i]) return false;
  return true;
}

function isAsWritten(value: unknown, written: JsonValue): boolean {
  switch (typeof value) {
    case "string":
    case "boolean":
    case "number":
      return value === written;
    case "undefined":
      return isUndefined(written);
    case "object":
      if (value === null) return written === null;
      return Array.isArray(value)
        ? isListAsWritten(value, written)
        : isObjectAsWritten(value, written);
    default:
      return false;
  }
}

function isListAsWritten(list: readonly unknown[], written: JsonValue): boolean {
  if (!Array.isArray(written) || written.length !== list.length) return false;
  if (Object.getPrototypeOf(list) !== Array.prototype) return false;
  for (let i = 0; i < list.length; i++) if (!isAsWritten(list[i], written[i])) return false;
  return true;
}

function isObjectAsWritten(object: object, written: JsonValue): boolean {
  if (!isPlainObject(object) || !isJsonObject(written)) return false;
  // Also where they cannot be seen, these change how an object is written.
  if ("lc" in object || "lc_serializable" in object || "__lc_escaped__" in object) return false;
  let members = 0;
  for (const key in object) {
    if (!Object.hasOwn(written, key)) return false;
    if (!isAsWritten(object[key], written[key] as JsonValue)) return false;
    members++;
  }
  return members === countOf(written);
}

function isPlainObject(value: unknown): value is { readonly [key: string]: unknown } {
  if (typeof value !== "object" || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function countOf(object: JsonObject): number {
  let count = 0;
  for (const _ in object) count++;
  return count;
}
