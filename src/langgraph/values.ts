import {
  DeltaSnapshot,
  isDeltaSnapshot,
  type SerializerProtocol,
} from "@langchain/langgraph-checkpoint";
import { AgstateError } from "../core/errors.js";
import { isJsonObject, type JsonObject, type JsonValue, setOwn } from "../core/json.js";
import { formatPointer } from "../core/json-pointer.js";
import { quoteForMessage } from "../core/names.js";
import { Kept } from "../objects/kept.js";
import { recall, remember, rememberSerialized } from "./memo.js";
import {
  isMessageForm,
  type MessageForm,
  messageForm,
  messagePayload,
  TAG,
} from "./message-form.js";
import { isStandard, restoreMessage } from "./messages.js";
import { isStillOfForm, isStillWritten } from "./unchanged.js";
import { writeMessage } from "./write-message.js";

/*
 * Values of LangGraph as JSON, so that they are stored piece by piece, and back.
 *
 * JSON stands for itself. A message is an object of its fields with its class at `$agstate`; anything else is
 * an object whose only key that is, with the kind and what it is made of: `["date", milliseconds]`,
 * `["map", [[key, value], ...]]`, `["serde", type, payload]` ... A key of
 * the caller's that looks like it (`$agstate` with any number of `$` in front) gets one more `$`, so that no
 * data is ever taken for a tag.
 */
const TAG_LIKE = /^\$+agstate$/;

type Path = readonly (string | number)[];

const ERRORS = { Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };

/**
 * Turns a value into JSON, for `normalize`.
 *
 * Messages, and what else LangChain makes serializable, go through the serializer; a message that went
 * before and has not changed since does not go again.
 *
 * @param path where the value stands, for messages
 * @throws AgstateError `INVALID_VALUE` for functions, symbols, cycles and instances of classes that cannot be restored
 */
export async function toStored(
  serde: SerializerProtocol,
  value: unknown,
  path: Path,
): Promise<unknown> {
  const encoder = new Encoder(serde, path);
  const stored = encoder.value(value);
  await encoder.finish();
  return stored;
}

/**
 * Restores a value.
 *
 * @throws AgstateError `UNSUPPORTED_ENCODING` when a tag is not one that this version writes
 */
export async function fromStored(serde: SerializerProtocol, stored: JsonValue): Promise<unknown> {
  const decoder = new Decoder(serde);
  const holder: { value: unknown } = { value: undefined };
  decoder.value(stored, (value) => {
    holder.value = value;
  });
  await Promise.all(decoder.jobs);
  for (const finish of decoder.last) finish();
  return holder.value;
}

/** An object for the serializer, and what is to hold what is stored of it. */
interface Unserialized {
  readonly object: object;
  readonly kept: Kept;
}

class Encoder {
  private readonly unserialized: Unserialized[] = [];
  private readonly open = new Set<object>();

  /** Where the value is that is at hand. */
  private readonly path: (string | number)[];

  constructor(
    private readonly serde: SerializerProtocol,
    path: Path,
  ) {
    this.path = [...path];
  }

  /** Asked for only when there are messages: most values hold none. */
  private get standard(): boolean {
    this.isStandard ??= isStandard(this.serde);
    return this.isStandard;
  }

  private isStandard: boolean | undefined;

  value(value: unknown): unknown {
    switch (typeof value) {
      case "string":
        return value.isWellFormed()
          ? value
          : tag("utf16", Buffer.from(value, "utf16le").toString("base64"));
      case "number":
        return Number.isFinite(value) && !Object.is(value, -0)
          ? value
          : tag("number", Object.is(value, -0) ? "-0" : String(value));
      case "boolean":
        return value;
      case "undefined":
        return tag("undefined");
      case "bigint":
        return tag("bigint", String(value));
      case "object":
        return value === null ? null : this.object(value);
      default:
        throw refused(`is a ${typeof value}, which cannot be stored`, this.path);
    }
  }

  private object(object: object): unknown {
    const known = recall(object, isStillStored);
    if (known !== undefined && this.standard) return known;
    if (this.open.has(object)) throw refused("refers to itself", this.path);
    this.open.add(object);
    const parts = this.parts(object);
    this.open.delete(object);
    return parts;
  }

  /** The value of a member, or of an item. */
  private inner(key: string | number, value: unknown): unknown {
    this.path.push(key);
    const stored = this.value(value);
    this.path.pop();
    return stored;
  }

  private list(items: readonly unknown[]): unknown[] {
    const stored: unknown[] = [];
    for (let i = 0; i < items.length; i++) stored.push(this.inner(i, items[i]));
    return stored;
  }

  private parts(object: object): unknown {
    if (Array.isArray(object)) return this.list(object);
    if (object instanceof Date) {
      const time = object.getTime();
      return tag("date", Number.isNaN(time) ? null : time);
    }
    if (object instanceof Map) return tag("map", this.list([...object]));
    if (object instanceof Set) return tag("set", this.list([...object]));
    if (object instanceof RegExp) return tag("regexp", object.source, object.flags);
    if (object instanceof Uint8Array) return tag("bytes", Buffer.from(object).toString("base64"));
    if (isDeltaSnapshot(object)) {
      return tag("delta-snapshot", this.inner("value", object.value));
    }
    if (object instanceof Error) {
      const { name, message } = object;
      return tag("error", name, this.inner("message", message));
    }
    const prototype = Object.getPrototypeOf(object);
    if (prototype !== null && Object.getPrototypeOf(prototype) !== null) {
      return this.instance(object);
    }
    return this.members(object);
  }

  private instance(object: Instance): unknown {
    if (object.lc_serializable === true) return this.serialized(object);
    if (typeof object.lg_name === "string" && typeof object.toJSON === "function") {
      // Send, Overwrite and Command come back as the plain objects that LangGraph takes for them.
      const { lg_name: name, ...members } = object.toJSON() as Record<string, unknown>;
      for (const key of Object.keys(members)) if (members[key] === undefined) delete members[key];
      return this.members(name === "Command" ? { lg_name: name, ...members } : members);
    }
    const name = quoteForMessage(String(object.constructor?.name));
    throw refused(
      `is an instance of class ${name}, which could not be restored; store plain data in its place`,
      this.path,
    );
  }

  private members(object: object): unknown {
    const stored: Record<string, unknown> = {};
    for (const [key, member] of Object.entries(object)) {
      setOwn(stored, TAG_LIKE.test(key) ? `$${key}` : key, this.inner(key, member));
    }
    return stored;
  }

  private serialized(object: object): Kept {
    const payload = this.standard ? writeMessage(object) : undefined;
    if (payload !== undefined) {
      const kept = new Kept(storedOf(payload));
      remember(object, kept);
      return kept;
    }
    const kept = new Kept({});
    this.unserialized.push({ object, kept });
    return kept;
  }

  /** Serializes what is left to do, all messages of a conversation in one call. */
  async finish(): Promise<void> {
    const { unserialized, serde } = this;
    if (unserialized.length === 0) return;
    const [type, data] = await serde.dumpsTyped(unserialized.map(({ object }) => object));
    const together = type === "json" ? parse(data) : undefined;
    for (const [i, { object, kept }] of unserialized.entries()) {
      const [type, payload] = Array.isArray(together)
        ? (["json", together[i]] as const)
        : await dumpAlone(serde, object);
      if (this.standard && type === "json") {
        kept.value = storedOf(payload);
        rememberSerialized(object, payload, kept);
      } else kept.value = { [TAG]: ["serde", type, payload] };
    }
  }
}

/** What is stored of what LangGraph's own serializer wrote: a message's form, where it has one. */
function storedOf(payload: JsonValue): object & JsonValue {
  return messageForm(payload) ?? { [TAG]: ["serde", "json", payload] };
}

/** Whether what is stored of a message would be stored of it now. */
function isStillStored(object: object, stored: JsonValue): boolean {
  if (isMessageForm(stored as JsonObject)) return isStillOfForm(object, stored as MessageForm);
  return isStillWritten(object, (stored as { readonly [TAG]: readonly JsonValue[] })[TAG][2]);
}

async function dumpAlone(serde: SerializerProtocol, object: object): Promise<[string, JsonValue]> {
  const [type, data] = await serde.dumpsTyped(object);
  return [type, type === "json" ? parse(data) : Buffer.from(data).toString("base64")];
}

function parse(data: Uint8Array): JsonValue {
  const text = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString();
  return JSON.parse(text) as JsonValue;
}

interface Instance {
  readonly lc_serializable?: unknown;
  readonly lg_name?: unknown;
  readonly toJSON?: unknown;
}

function tag(...parts: readonly unknown[]): unknown {
  return { [TAG]: parts };
}

type Put = (value: unknown) => void;

class Decoder {
  readonly jobs: Promise<void>[] = [];
  /** What fills collections: their members may come from jobs. */
  readonly last: (() => void)[] = [];

  private readonly standard: boolean;

  constructor(private readonly serde: SerializerProtocol) {
    this.standard = isStandard(serde);
  }

  value(stored: JsonValue, put: Put): void {
    if (Array.isArray(stored)) put(this.list(stored));
    else if (!isJsonObject(stored)) put(stored);
    else if (Object.hasOwn(stored, TAG)) this.tagged(stored, put);
    else {
      const object: Record<string, unknown> = {};
      put(object);
      for (const key of Object.keys(stored)) {
        const own = TAG_LIKE.test(key) ? key.slice(1) : key;
        // The order of members is that of the stored ones, also of those that come later.
        setOwn(object, own, undefined);
        this.value(stored[key] as JsonValue, (value) => setOwn(object, own, value));
      }
    }
  }

  private list(stored: readonly JsonValue[]): unknown[] {
    const list: unknown[] = new Array(stored.length).fill(undefined);
    stored.forEach((item, index) => {
      this.value(item, (value) => {
        list[index] = value;
      });
    });
    return list;
  }

  private tagged(stored: { readonly [key: string]: JsonValue }, put: Put): void {
    if (isMessageForm(stored)) {
      this.serialized("json", messagePayload(stored), put);
      return;
    }
    const parts = stored[TAG];
    if (!Array.isArray(parts) || Object.keys(stored).length !== 1) throw unknownTag(stored);
    const [kind, first, second] = parts as readonly JsonValue[];
    const rest = parts.length - 1;
    if (kind === "undefined" && rest === 0) put(undefined);
    else if (kind === "bigint" && rest === 1 && /^-?[0-9]+$/.test(String(first)))
      put(BigInt(first as string));
    else if (kind === "number" && rest === 1 && isOddNumber(first)) put(Number(first));
    else if (kind === "utf16" && rest === 1 && typeof first === "string")
      put(Buffer.from(first, "base64").toString("utf16le"));
    else if (kind === "date" && rest === 1 && (first === null || typeof first === "number"))
      put(new Date(first ?? Number.NaN));
    else if (kind === "bytes" && rest === 1 && typeof first === "string")
      put(new Uint8Array(Buffer.from(first, "base64")));
    else if (kind === "regexp" && typeof first === "string" && typeof second === "string")
      put(new RegExp(first, second));
    else if (kind === "delta-snapshot" && rest === 1) {
      const snapshot = new DeltaSnapshot<unknown>(undefined);
      put(snapshot);
      this.value(first as JsonValue, (value) => {
        snapshot.value = value;
      });
    } else if (kind === "map" && Array.isArray(first)) this.map(first, put);
    else if (kind === "set" && Array.isArray(first)) {
      const set = new Set<unknown>();
      put(set);
      const items = this.list(first);
      this.last.push(() => items.forEach((item) => void set.add(item)));
    } else if (kind === "error" && typeof first === "string" && rest === 2) {
      this.value(second as JsonValue, (message) => put(makeError(first, String(message))));
    } else if (kind === "serde" && typeof first === "string" && rest === 2) {
      this.serialized(first, second as JsonValue, put);
    } else throw unknownTag(stored);
  }

  private map(stored: readonly JsonValue[], put: Put): void {
    const map = new Map<unknown, unknown>();
    put(map);
    const pairs = this.list(stored);
    this.last.push(() => {
      for (const pair of pairs) map.set(...(pair as [unknown, unknown]));
    });
  }

  private serialized(type: string, payload: JsonValue, put: Put): void {
    const message = this.standard && type === "json" ? restoreMessage(payload) : undefined;
    if (message !== undefined) {
      put(message);
      return;
    }
    const data =
      type === "json"
        ? JSON.stringify(payload)
        : new Uint8Array(Buffer.from(String(payload), "base64"));
    const job = this.serde.loadsTyped(type, data).then(put);
    job.catch(() => {});
    this.jobs.push(job);
  }
}

function isOddNumber(text: JsonValue | undefined): boolean {
  return ["NaN", "Infinity", "-Infinity", "-0"].includes(text as string);
}

function makeError(name: string, message: string): Error {
  if (Object.hasOwn(ERRORS, name)) return new ERRORS[name as keyof typeof ERRORS](message);
  const error = new Error(message);
  error.name = name;
  return error;
}

function refused(problem: string, path: Path): AgstateError {
  const pointer = formatPointer(path.map(String));
  return new AgstateError("INVALID_VALUE", `the value at ${quoteForMessage(pointer)} ${problem}`, {
    path: pointer,
  });
}

function unknownTag(stored: JsonValue): AgstateError {
  // The caller's own keys and values are no part of a kind's name.
  const parts = (stored as { readonly [TAG]?: JsonValue })[TAG];
  const kind = Array.isArray(parts) ? (parts as readonly JsonValue[])[0] : undefined;
  const isName = typeof kind === "string" && /^[a-z][a-z0-9-]{0,30}$/.test(kind);
  return new AgstateError(
    "UNSUPPORTED_ENCODING",
    `a stored value is of ${isName ? `the kind ${kind}` : "a kind"} that this version of agstate cannot restore; read it with the version that wrote it`,
    isName ? { kind } : {},
  );
}
