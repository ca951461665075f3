import { AgstateError } from "../core/errors.js";
import type { JsonValue } from "../core/json.js";
import { type SecretKeys, secretKeys } from "../core/secret-keys.js";
import { isWithheld } from "../core/withheld.js";
import { isAfterSecretName, isNamedSecret } from "./named-values.js";
import { REDACTED, redactText } from "./secret-texts.js";

/** How much of a payload is told, in bytes of UTF-8. */
const PAYLOAD_MAX_BYTES = 4096;
/** The least that can be asked for: what says that something was cut must fit. */
const PAYLOAD_MIN_BYTES = 32;
const CUT = "... [cut]";

/**
 * Says what is told in the place of a value: the value itself to leave it as it is, another, or undefined for `[redacted]`.
 *
 * It is asked for the whole payload first (`path` is empty), then for what is in the answer, part by part. It is not asked
 * for what was replaced before, by a key's name or a secret's form.
 *
 * @param path keys and, in lists, positions
 */
export type Redact = (path: readonly string[], value: JsonValue) => JsonValue | undefined;

/** What becomes of payloads before a span holds them. */
export interface PayloadOptions {
  /**
   * Keys whose values are replaced, beside those that name secrets (password, secret, token, API key, authorization, cookie,
   * credential, private key, session, ...). A text is matched by its words, in any spelling: `customer name` is `customerName`, `CUSTOMER_NAME` and
   * `X-Customer-Name`; a pattern is tried on the key as it is.
   */
  readonly keys?: readonly (string | RegExp)[];
  /** Asked after that, one after the other; when one throws, all of the payload is `[redacted]`. */
  readonly redact?: Redact | readonly Redact[];
  /** How much is told, in bytes of UTF-8; default 4096, at least 32. */
  readonly maxBytes?: number;
}

/** Makes payloads fit to be told. Nothing here throws. */
export interface Redactor {
  /** A payload as JSON; where it was cut, it ends in `... [cut]`. */
  value(value: JsonValue): string;
  /** A text, such as an error's message. */
  text(text: string): string;
}

/** @throws AgstateError `INVALID_ARGUMENT` */
export function redactor(options: PayloadOptions = {}): Redactor {
  const { keys = [], redact = [], maxBytes = PAYLOAD_MAX_BYTES } = options;
  const asked = typeof redact === "function" ? [redact] : redact;
  check(keys, asked, maxBytes);
  const isSecret = secretKeys(keys);

  const told = (value: JsonValue): JsonValue => {
    const clean = JSON.parse(written(value, isSecret, Infinity)) as JsonValue;
    return asked.reduce<JsonValue>((now, each) => replaced(now, each, []), clean);
  };
  const guarded = (work: () => string) => {
    try {
      return cut(work().toWellFormed(), maxBytes);
    } catch {
      return REDACTED;
    }
  };
  return {
    value: (value) =>
      guarded(() => written(asked.length === 0 ? value : told(value), isSecret, maxBytes)),
    text: (text) =>
      guarded(() => {
        const clean = redactText(text, isSecret);
        if (asked.length === 0) return clean;
        const answer = told(clean);
        return typeof answer === "string" ? answer : written(answer, isSecret, maxBytes);
      }),
  };
}

function check(keys: unknown, asked: unknown, maxBytes: unknown): void {
  const isKey = (key: unknown) =>
    key instanceof RegExp || (typeof key === "string" && /[\p{L}\p{N}]/u.test(key));
  if (!Array.isArray(keys) || !keys.every(isKey)) {
    throw invalid(
      "keys",
      "must be a list of names, each with a letter or a digit, and of patterns",
    );
  }
  if (!Array.isArray(asked) || !asked.every((each) => typeof each === "function")) {
    throw invalid("redact", "must be a function, or a list of functions");
  }
  if (!Number.isSafeInteger(maxBytes) || (maxBytes as number) < PAYLOAD_MIN_BYTES) {
    throw invalid("maxBytes", `must be a whole number of bytes, at least ${PAYLOAD_MIN_BYTES}`);
  }
}

function invalid(option: string, problem: string): AgstateError {
  return new AgstateError("INVALID_ARGUMENT", `the redaction's ${option} ${problem}`, { option });
}

/** What a function makes of a value, and then of each part of that. */
function replaced(value: JsonValue, redact: Redact, path: readonly string[]): JsonValue {
  if (value === REDACTED) return value;
  const answer = redact(path, value);
  if (answer === undefined) return REDACTED;
  if (typeof answer !== "object" || answer === null) return answer;
  if (Array.isArray(answer)) {
    return answer.map((part: JsonValue, i) => replaced(part, redact, [...path, String(i)]));
  }
  // Unlike assignment this makes `__proto__` an ordinary key.
  return Object.fromEntries(
    Object.entries(answer).map(([key, part]) => [key, replaced(part, redact, [...path, key])]),
  );
}

/** A value as JSON, without what is secret; little more than `maxBytes` of it, where it is longer. */
function written(value: JsonValue, isSecret: SecretKeys, maxBytes: number): string {
  let text = "";
  const write = (part: unknown): void => {
    if (typeof part === "string") text += JSON.stringify(cleanText(part, isSecret));
    else if (isWithheld(part)) text += '"[withheld]"';
    else if (Array.isArray(part)) {
      list(part, "[", "]", (element, i) => put(element, isAfterSecretName(part, i, isSecret)));
    } else if (typeof part === "object" && part !== null) {
      const members = Object.entries(part).filter(([, member]) => member !== undefined);
      const named = isNamedSecret(part, isSecret);
      list(members, "{", "}", ([key, member]) => {
        text += `${JSON.stringify(redactText(key, isSecret))}:`;
        put(member, isSecret(key, member) || (named && key === "value"));
      });
    } else text += JSON.stringify(part) ?? "null";
  };
  const put = (part: unknown, secret: boolean) => {
    if (secret) text += JSON.stringify(REDACTED);
    else write(part);
  };
  const list = <Part>(
    parts: readonly Part[],
    open: string,
    close: string,
    each: (part: Part, i: number) => void,
  ) => {
    text += open;
    for (const [i, part] of parts.entries()) {
      // A unit of UTF-16 is a byte of UTF-8 at least.
      if (text.length > maxBytes) return;
      if (i > 0) text += ",";
      each(part, i);
    }
    text += close;
  };
  write(value);
  return text;
}

/** A text that is JSON, as the arguments of a model's tool calls are, is looked into like any value. */
function cleanText(text: string, isSecret: SecretKeys): string {
  if (/^\s*[{[]/.test(text)) {
    try {
      const inner = JSON.parse(text) as JsonValue;
      const clean = written(inner, isSecret, Infinity);
      if (clean !== JSON.stringify(inner)) return clean;
    } catch {
      // Not JSON, or a part of it.
    }
  }
  return redactText(text, isSecret);
}

/** At most so many bytes, whole characters, saying that it was cut. */
function cut(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return text;
  let end = maxBytes - CUT.length;
  // Bytes that go on with a character.
  while (((bytes[end] as number) & 0xc0) === 0x80) end--;
  return `${bytes.toString("utf8", 0, end)}${CUT}`;
}
