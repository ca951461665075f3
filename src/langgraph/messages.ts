import {
  AIMessage,
  AIMessageChunk,
  ChatMessage,
  FunctionMessage,
  HumanMessage,
  HumanMessageChunk,
  SystemMessage,
  SystemMessageChunk,
  ToolMessage,
} from "@langchain/core/messages";
import { JsonPlusSerializer, type SerializerProtocol } from "@langchain/langgraph-checkpoint";
import { isJsonObject, type JsonValue, setOwn } from "../core/json.js";

/** The classes whose instances are restored here, by the name that LangChain gives them. */
const CLASSES = {
  AIMessage,
  AIMessageChunk,
  ChatMessage,
  FunctionMessage,
  HumanMessage,
  HumanMessageChunk,
  SystemMessage,
  SystemMessageChunk,
  ToolMessage,
};

/** LangChain restores what is nested up to 50 levels deep; below that it is left to say so. */
const DEPTH_MAX = 40;

type Constructor = new (fields: Record<string, unknown>) => object;

interface MessageClass {
  readonly create: Constructor;
  /** Fields whose names have another form in JavaScript, but keep theirs in this class. */
  readonly kept: ReadonlySet<string>;
}

const BY_NAME: ReadonlyMap<unknown, MessageClass> = new Map(
  Object.entries(CLASSES).map(([name, known]) => {
    const create = known as unknown as Constructor;
    return [name, { create, kept: keptFields(create) }] as const;
  }),
);

/** Whether values go through LangGraph's own serializer, and so messages take the form that is known here. */
export function isStandard(serde: SerializerProtocol): boolean {
  const standard = JsonPlusSerializer.prototype;
  return METHODS.every((name) => Reflect.get(serde, name) === Reflect.get(standard, name));
}

/** The methods of LangGraph's serializer; its own call each other. */
const METHODS = ["loadsTyped", "dumpsTyped", "_loads", "_dumps"] as const;

/**
 * Restores a message of LangChain's as its `load` does, at once: that takes some ten microseconds and
 * several promises a message, which a list of long conversations pays a million times.
 *
 * @param payload what the serializer wrote
 * @returns undefined where anything is not as messages usually are; the serializer restores that
 */
export function restoreMessage(payload: JsonValue): object | undefined {
  if (!isJsonObject(payload) || payload.lc !== 1 || payload.type !== "constructor")
    return undefined;
  const { id, kwargs } = payload;
  if (!Array.isArray(id) || id.length !== 3 || !isJsonObject(kwargs)) return undefined;
  if (id[0] !== "langchain_core" || id[1] !== "messages") return undefined;
  const known = BY_NAME.get(id[2]);
  if (known === undefined) return undefined;
  const fields: Record<string, unknown> = {};
  for (const [key, stored] of Object.entries(kwargs)) {
    if (isUndefined(stored)) continue;
    const keepsName = known.kept.has(key) || (/^[A-Za-z0-9]+$/.test(key) && !(key in {}));
    if (key === "lc" || !keepsName) return undefined;
    const value = copy(stored, 1);
    if (value === UNUSUAL) return undefined;
    fields[key] = value;
  }
  return new known.create(fields);
}

/** How the serializer writes `undefined`; LangChain's `load` leaves such a field out. */
export function isUndefined(stored: JsonValue): boolean {
  return (
    isJsonObject(stored) &&
    stored.lc === 2 &&
    stored.type === "undefined" &&
    Object.keys(stored).length === 2
  );
}

const UNUSUAL = Symbol("unusual");

/** Copies plain JSON; what the serializer or LangChain might take for a tag of its own is not plain. */
function copy(value: JsonValue, depth: number): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (depth > DEPTH_MAX) return UNUSUAL;
  if (Array.isArray(value)) {
    const list: unknown[] = [];
    for (const item of value) {
      const copied = copy(item, depth + 1);
      if (copied === UNUSUAL) return UNUSUAL;
      list.push(copied);
    }
    return list;
  }
  const object: Record<string, unknown> = {};
  for (const key of Object.keys(value)) {
    if (key === "lc" || key.startsWith("__")) return UNUSUAL;
    const copied = copy(
      (value as { readonly [key: string]: JsonValue })[key] as JsonValue,
      depth + 1,
    );
    if (copied === UNUSUAL) return UNUSUAL;
    setOwn(object, key, copied);
  }
  return object;
}

function keptFields(create: Constructor): Set<string> {
  const kept = new Set<string>();
  for (let at = create.prototype; at !== null; at = Object.getPrototypeOf(at)) {
    const aliases = (Reflect.get(at, "lc_aliases") ?? {}) as Record<string, string>;
    for (const [field, alias] of Object.entries(aliases)) if (field === alias) kept.add(field);
  }
  return kept;
}
