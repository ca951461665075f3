import { AgstateError } from "../core/errors.js";
import { hasOwn, isJsonObject, type JsonValue, setOwn } from "../core/json.js";
import { formatPointer } from "../core/json-pointer.js";
import { checkOneLine, quoteForMessage } from "../core/names.js";
import { canonicalText } from "../objects/canonical.js";
import { digestText } from "../objects/hash.js";
import { normalize } from "../objects/normalize.js";

/** Most tools, and most prompts. */
const ITEMS_MAX = 10_000;
/** Longest name of a tool or a prompt, and longest version of code, in bytes of UTF-8. */
const NAME_MAX_BYTES = 1024;
/** All that fingerprints hold, in bytes of JSON. */
const FINGERPRINTS_MAX_BYTES = 16 * 1024 * 1024;

/** What work is done with, as whoever does it says: all of it may be left out, and is not compared then. */
export interface Fingerprints {
  /** The tools there are, and what each takes, such as a JSON Schema. */
  readonly tools?: readonly { readonly name: string; readonly schema?: unknown }[];
  /** Prompts by name: their text, or a version or hash that stands for it. */
  readonly prompts?: Readonly<Record<string, string>>;
  /** The model and its settings. */
  readonly model?: unknown;
  /** The version of the code, such as a Git commit. */
  readonly code?: string;
}

/** A thing on record: its value, and the SHA-256 of the value's canonical JSON. */
export interface Fingerprint {
  readonly digest: string;
  readonly value: JsonValue;
}

/** Fingerprints as an envelope keeps them: plain JSON. */
export interface FingerprintRecord {
  /** Schemas by the tool's name, null where none was given. */
  readonly tools?: Readonly<Record<string, Fingerprint>>;
  readonly prompts?: Readonly<Record<string, Fingerprint>>;
  readonly model?: Fingerprint;
  readonly code?: Fingerprint;
}

/** Something that work is done with, and that is not as it was. */
export interface FingerprintDrift {
  readonly kind: "tool" | "prompt" | "model" | "code";
  /** Of a tool or a prompt. */
  readonly name: string | null;
  /** `untold`: it is on record, and whoever goes on does not say what it is now. */
  readonly change: "added" | "removed" | "changed" | "untold";
  readonly recorded?: JsonValue;
  readonly now?: JsonValue;
}

const MEMBERS = ["tools", "prompts", "model", "code"];
const DIGEST = /^[0-9a-f]{64}$/;

/**
 * Checks fingerprints, and makes what is kept of them.
 *
 * @throws AgstateError `INVALID_VALUE`, `LIMIT_EXCEEDED`
 */
export function recordFingerprints(given: Fingerprints): FingerprintRecord {
  const { tools, prompts, model, code } = membersOf(given, "fingerprints", MEMBERS);
  const named = {
    ...(tools === undefined ? {} : { tools: toolsOf(tools) }),
    ...(prompts === undefined ? {} : { prompts: promptsOf(prompts) }),
    ...(model === undefined ? {} : { model }),
    ...(code === undefined
      ? {}
      : { code: checkOneLine("the code's version", code as string, NAME_MAX_BYTES) }),
  };
  // All at once, so that its bytes are counted together.
  const values = normalize(named, {
    maxBytes: FINGERPRINTS_MAX_BYTES,
    what: "fingerprints",
  }) as Readonly<Record<string, JsonValue>>;
  const record: Record<string, unknown> = {};
  for (const [member, value] of Object.entries(values)) {
    record[member] =
      member === "tools" || member === "prompts"
        ? mapValues(value as Readonly<Record<string, JsonValue>>, fingerprint)
        : fingerprint(value);
  }
  return record;
}

/**
 * Checks fingerprints as an envelope has them. Values are taken as they are, since what they were told by their digests.
 *
 * @throws AgstateError `INVALID_VALUE`
 */
export function checkFingerprintRecord(given: unknown): FingerprintRecord {
  const record = membersOf(given, "fingerprints on record", MEMBERS);
  for (const [member, value] of Object.entries(record)) {
    if (value === undefined) continue;
    if (member === "model" || member === "code") checkFingerprint(value, `/${member}`);
    else {
      const items = membersOf(value, `fingerprints on record: /${member}`);
      for (const [name, item] of Object.entries(items)) {
        checkFingerprint(item, `/${member}${formatPointer([name])}`);
      }
    }
  }
  return record as FingerprintRecord;
}

/**
 * What is not as it was. Only what was on record then counts: of a kind of which nothing was recorded nobody knows whether it
 * has changed.
 */
export function driftBetween(
  then: FingerprintRecord | null,
  now: FingerprintRecord | null,
): FingerprintDrift[] {
  if (then === null) return [];
  return [
    ...driftOfNamed("tool", then.tools, now?.tools),
    ...driftOfNamed("prompt", then.prompts, now?.prompts),
    ...driftOfOne("model", null, then.model, now?.model, "untold"),
    ...driftOfOne("code", null, then.code, now?.code, "untold"),
  ];
}

type Items = Readonly<Record<string, Fingerprint>>;

function driftOfNamed(
  kind: FingerprintDrift["kind"],
  then: Items | undefined,
  now: Items | undefined,
): FingerprintDrift[] {
  if (then === undefined) return [];
  const names = [...new Set([...Object.keys(then), ...Object.keys(now ?? {})])].sort();
  return names.flatMap((name) => {
    const missing = now === undefined ? "untold" : "removed";
    const after = now === undefined ? undefined : own(now, name);
    const before = own(then, name);
    if (before !== undefined) return driftOfOne(kind, name, before, after, missing);
    return [{ kind, name, change: "added", ...(after && { now: after.value }) } as const];
  });
}

function driftOfOne(
  kind: FingerprintDrift["kind"],
  name: string | null,
  then: Fingerprint | undefined,
  now: Fingerprint | undefined,
  missing: "untold" | "removed",
): FingerprintDrift[] {
  if (then === undefined || then.digest === now?.digest) return [];
  if (now === undefined) return [{ kind, name, change: missing, recorded: then.value }];
  return [{ kind, name, change: "changed", recorded: then.value, now: now.value }];
}

function fingerprint(value: JsonValue): Fingerprint {
  return { digest: digestText(canonicalText(value)), value };
}

function toolsOf(given: unknown): Readonly<Record<string, unknown>> {
  if (!Array.isArray(given)) throw invalid("tools", "is not a list of { name, schema }");
  const tools: Record<string, unknown> = {};
  for (const [i, one] of Array.from(given).entries()) {
    const { name, schema = null } = membersOf(one, `tools: /${i}`, ["name", "schema"]);
    checkName("tool", name);
    if (hasOwn(tools, name)) {
      throw invalid("tools", `has ${quoteForMessage(name)} twice; each tool has a name of its own`);
    }
    setOwn(tools, name, schema);
  }
  return bounded("tools", tools);
}

function promptsOf(given: unknown): Readonly<Record<string, unknown>> {
  const prompts = membersOf(given, "prompts");
  for (const [name, text] of Object.entries(prompts)) {
    checkName("prompt", name);
    if (typeof text !== "string") {
      throw invalid("prompts", `has ${quoteForMessage(name)}, which is not a text`);
    }
  }
  return bounded("prompts", prompts);
}

function bounded<Items extends object>(field: string, items: Items): Items {
  const count = Object.keys(items).length;
  if (count <= ITEMS_MAX) return items;
  throw new AgstateError(
    "LIMIT_EXCEEDED",
    `${field} has ${count} items; at most ${ITEMS_MAX} are allowed`,
    { field, count, limit: ITEMS_MAX },
  );
}

function checkName(what: string, name: unknown): asserts name is string {
  if (name === "") throw invalid(what, "has an empty name");
  checkOneLine(`the name of a ${what}`, name as string, NAME_MAX_BYTES);
}

function checkFingerprint(given: unknown, at: string): void {
  const { digest } = membersOf(given, `fingerprints on record: ${at}`, ["digest", "value"]);
  if (typeof digest !== "string" || !DIGEST.test(digest) || !hasOwn(given as object, "value")) {
    throw invalid("fingerprints on record", `have no digest of 64 hex digits and value at ${at}`);
  }
}

/** An object's members, which may be these only; any where they are not given. */
function membersOf(
  given: unknown,
  what: string,
  known?: readonly string[],
): Readonly<Record<string, unknown>> {
  if (!isJsonObject(given)) throw invalid(what, "is not an object");
  for (const key of Object.keys(given)) {
    if (known === undefined || known.includes(key)) continue;
    throw invalid(what, `has the member ${quoteForMessage(key)}; known are ${known.join(", ")}`);
  }
  return given;
}

function mapValues<Out>(
  items: Readonly<Record<string, JsonValue>>,
  make: (value: JsonValue) => Out,
): Readonly<Record<string, Out>> {
  const made: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(items)) setOwn(made, name, make(value));
  return made as Record<string, Out>;
}

function own(items: Items, name: string): Fingerprint | undefined {
  return hasOwn(items, name) ? items[name] : undefined;
}

function invalid(field: string, problem: string): AgstateError {
  return new AgstateError("INVALID_VALUE", `${field} ${problem}`, { field });
}
