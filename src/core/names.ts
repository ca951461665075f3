import { AgstateError } from "./errors.js";

/** Longest agent, author and workflow id, and longest ref component, in bytes of UTF-8. */
export const NAME_MAX_BYTES = 200;

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;

/** Whether the text has a lone or reversed surrogate, which UTF-8 cannot hold. */
export function hasLoneSurrogate(text: string): boolean {
  return !text.isWellFormed();
}

/** Names a text in a message without letting it break the line: quoted, escaped, shortened. */
export function quoteForMessage(text: string): string {
  const short = text.length > 80 ? `${text.slice(0, 77)}...` : text;
  return JSON.stringify(short.toWellFormed()).replace(
    /[\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u206f\ufeff]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/**
 * Checks an agent, author or workflow id: 1 to 200 bytes of UTF-8, no control
 * characters, none of `<`, `>`, `:`, no space at either edge.
 *
 * @param what how the message names the field, for example "workflow id"
 * @throws AgstateError `INVALID_NAME`
 */
export function checkIdentity(what: string, name: string): string {
  if (sound.has(name)) return name;
  const problem = identityProblem(name);
  if (problem !== null) {
    throw new AgstateError(
      "INVALID_NAME",
      `${what} ${typeof name === "string" ? quoteForMessage(name) : String(name)} ${problem}`,
      { field: what, name: String(name) },
    );
  }
  if (sound.size >= REMEMBERED_MAX) sound.clear();
  sound.add(name);
  return name;
}

/** Names that passed: the same few come with every write. */
const sound = new Set<string>();
const REMEMBERED_MAX = 1000;

function identityProblem(name: unknown): string | null {
  if (typeof name !== "string") return "is not a string";
  if (name === "") return "is empty; give 1 to 200 bytes";
  if (hasLoneSurrogate(name)) return "holds a lone surrogate, which UTF-8 cannot hold";
  if (Buffer.byteLength(name) > NAME_MAX_BYTES) {
    return `is ${Buffer.byteLength(name)} bytes long; at most ${NAME_MAX_BYTES} are allowed`;
  }
  if (CONTROL.test(name)) return "holds a control character or a line break";
  if (/[<>:]/.test(name)) return "holds one of < > :, which an author line cannot hold";
  if (name.trim() !== name) return "begins or ends with a space";
  return null;
}

/** Whether a text is one line without control characters. */
export function isOneLine(text: string): boolean {
  return !CONTROL.test(text);
}

/**
 * Checks a text that is kept on one line (a reason, a header value).
 *
 * @throws AgstateError `INVALID_VALUE`
 */
export function checkOneLine(what: string, text: string, maxBytes = 1024): string {
  let problem: string | null = null;
  if (typeof text !== "string") problem = "is not a string";
  else if (hasLoneSurrogate(text)) problem = "holds a lone surrogate, which UTF-8 cannot hold";
  else if (CONTROL.test(text))
    problem = "holds a control character or a line break; it must be one line";
  else if (Buffer.byteLength(text) > maxBytes) {
    problem = `is ${Buffer.byteLength(text)} bytes long; at most ${maxBytes} are allowed`;
  }
  if (problem !== null) {
    throw new AgstateError("INVALID_VALUE", `${what} ${problem}`, { field: what });
  }
  return text;
}

/**
 * Checks a text that may have several lines (a commit message).
 *
 * @throws AgstateError `INVALID_VALUE`, `LIMIT_EXCEEDED`
 */
export function checkText(what: string, text: string, maxBytes: number): string {
  let problem: string | null = null;
  if (typeof text !== "string") problem = "is not a string";
  else if (text.includes("\0"))
    problem = "holds a NUL character; remove it (state values may hold it)";
  else if (hasLoneSurrogate(text)) problem = "holds a lone surrogate, which UTF-8 cannot hold";
  if (problem !== null) {
    throw new AgstateError("INVALID_VALUE", `${what} ${problem}`, { field: what });
  }
  const size = Buffer.byteLength(text);
  if (size > maxBytes) {
    throw new AgstateError(
      "LIMIT_EXCEEDED",
      `${what} is ${size} bytes long; the limit is ${maxBytes}`,
      { field: what, size, limit: maxBytes },
    );
  }
  return text;
}

/**
 * Checks why something is done that is kept on record.
 *
 * @param what what is done for a reason, and who keeps that, such as `a hold is placed for a reason that its log keeps`
 * @throws AgstateError `INVALID_VALUE`
 */
export function checkReason(reason: unknown, what: string, maxBytes: number): string {
  if (typeof reason !== "string" || reason.trim() === "") {
    throw new AgstateError("INVALID_VALUE", `${what}; say which in one line`, { field: "reason" });
  }
  return checkOneLine("reason", reason, maxBytes);
}
