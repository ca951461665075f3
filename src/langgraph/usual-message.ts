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

export interface MessageClass {
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

/** What of a message LangChain's `toJSON` goes by. */
export interface Message {
  readonly [field: string]: unknown;
  readonly constructor: unknown;
  readonly lc_serializable?: unknown;
  readonly lc_namespace?: unknown;
  readonly lc_kwargs?: unknown;
  readonly toJSON?: unknown;
}

const TO_JSON: unknown = AIMessage.prototype.toJSON;

/**
 * The class of a message that LangChain writes by its constructor's fields, each with the value that it has
 * now; undefined of any other object, and where anything of the message's own says otherwise.
 */
export function usualClassOf(message: object): MessageClass | undefined {
  const known = KNOWN.get(Object.getPrototypeOf(message));
  if (known === undefined) return undefined;
  const its = message as Message;
  if (its.toJSON !== TO_JSON || its.constructor !== known || its.lc_serializable !== true)
    return undefined;
  if (Object.hasOwn(message, "lc_id") || !isPlainObject(its.lc_kwargs)) return undefined;
  return Array.isArray(its.lc_namespace) ? known : undefined;
}

/** Whether an object within a message is written member by member, each under its own name. */
export function isUsualObject(object: object): object is { readonly [key: string]: unknown } {
  // Also where they cannot be seen, these change how an object is written.
  return (
    isPlainObject(object) &&
    !("lc" in object || "lc_serializable" in object || "__lc_escaped__" in object)
  );
}

function isPlainObject(value: unknown): value is { readonly [key: string]: unknown } {
  if (typeof value !== "object" || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
