import { type JsonValue, setOwn } from "../core/json.js";
import { isUsualObject, type Message, type MessageClass, usualClassOf } from "./usual-message.js";

/** LangChain escapes what is nested in a message without end; deeper than this it is left to do so. */
const DEPTH_MAX = 40;

/** How many fields of a class are learned. */
const FIELDS_MAX = 64;

/** Fields of each class that the serializer was seen to write under their own names, as they are. */
const learned = new Map<MessageClass, Set<string>>();

/** Learns from a message that the serializer wrote just as `writeMessage` would. */
export function learn(message: object): void {
  const known = usualClassOf(message);
  if (known === undefined) return;
  const fields = learned.get(known) ?? new Set();
  learned.set(known, fields);
  for (const key in (message as Message).lc_kwargs as object)
    if (fields.size < FIELDS_MAX) fields.add(key);
}

/**
 * Writes a message as LangGraph's own serializer does, at once: that takes it over ten microseconds a message,
 * which whoever goes on with a long conversation would pay for all its messages.
 *
 * @returns undefined where anything is not as messages usually are, and where the serializer was not yet seen
 * to write messages of that class with those fields; the serializer writes that
 */
export function writeMessage(message: object): JsonValue | undefined {
  const known = usualClassOf(message);
  const fields = known && learned.get(known);
  if (known === undefined || fields === undefined) return undefined;
  const its = message as Message;
  const id = [...(its.lc_namespace as unknown[]), known.lc_name()];
  const kwargs: Record<string, JsonValue> = {};
  for (const key in its.lc_kwargs as object) {
    if (!fields.has(key) || !Object.hasOwn(message, key)) return undefined;
    const written = write(its[key], 1);
    if (written === undefined) return undefined;
    setOwn(kwargs, key, written);
  }
  if (!id.every((part): part is string => typeof part === "string")) return undefined;
  return { lc: 1, type: "constructor", id, kwargs };
}

/** @returns undefined of what is not plain data */
function write(value: unknown, depth: number): JsonValue | undefined {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value;
    case "number":
      return Number.isFinite(value) ? value : undefined;
    case "undefined":
      return { lc: 2, type: "undefined" };
    case "object":
      if (value === null) return null;
      if (depth > DEPTH_MAX) return undefined;
      return Array.isArray(value) ? writeList(value, depth) : writeObject(value, depth);
    default:
      return undefined;
  }
}

function writeList(list: readonly unknown[], depth: number): JsonValue | undefined {
  if (Object.getPrototypeOf(list) !== Array.prototype) return undefined;
  const items: JsonValue[] = [];
  for (let i = 0; i < list.length; i++) {
    const written = write(list[i], depth + 1);
    if (written === undefined) return undefined;
    items.push(written);
  }
  return items;
}

function writeObject(object: object, depth: number): JsonValue | undefined {
  // LangGraph writes what bears this name in another form.
  if (!isUsualObject(object) || "lg_name" in object) return undefined;
  const members: Record<string, JsonValue> = {};
  for (const key in object) {
    if (key === "__proto__" || !Object.hasOwn(object, key)) return undefined;
    const written = write(object[key], depth + 1);
    if (written === undefined) return undefined;
    members[key] = written;
  }
  return members;
}
