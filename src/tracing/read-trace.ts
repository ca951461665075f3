import { AgstateError, isAgstateError } from "../core/errors.js";
import { quoteForMessage } from "../core/names.js";
import { parseStrictJson } from "../objects/strict-json.js";
import { spansOf } from "./otlp.js";
import type { TraceSpan } from "./trace-span.js";

/** The longest document, in UTF-16 units: its value takes several times as much memory. */
const DOCUMENT_MAX_LENGTH = 256 * 1024 * 1024;

/**
 * Reads spans in OTLP JSON, as collectors' file exporters and SDKs write it: a document a line, of which one is held at a time,
 * or one document over many lines.
 *
 * @param source bytes or texts, such as a stream of a file
 * @param name how messages call it
 * @throws AgstateError `INVALID_ARGUMENT`, `INVALID_VALUE`, `LIMIT_EXCEEDED`, naming the line
 */
export async function* readTrace(
  source: AsyncIterable<Uint8Array | string>,
  name = "the trace",
): AsyncGenerator<TraceSpan, void, undefined> {
  const file = quoteForMessage(name).slice(1, -1);
  let line = 0;
  let begun = false;
  /** A document that goes over many lines, from the first that is none by itself. */
  let spread: { readonly from: number; readonly texts: string[]; length: number } | undefined;
  for await (const text of linesOf(source, file)) {
    line++;
    if (spread !== undefined) {
      // Lines that are whole after one that is not: that one is damaged.
      if (spread.texts.length === 1 && isObjectAlone(text)) break;
      spread.texts.push(text);
      spread.length += text.length + 1;
      checkLength(spread.length, file, spread.from);
      continue;
    }
    if (text.trim() === "") continue;
    const document = parsed(text);
    if (document !== undefined) yield* spansOf({ value: document, where: at(file, line) });
    else if (begun) refuse(text, file, line);
    else spread = { from: line, texts: [text], length: text.length };
    begun = true;
  }
  if (spread === undefined) return;
  const text = spread.texts.join("\n");
  const document = parsed(text);
  if (document === undefined) refuse(text, file, spread.from);
  yield* spansOf({ value: document, where: file });
}

function at(file: string, line: number): string {
  return `${file}, line ${line}`;
}

/** Lines of UTF-8, without their ends. */
async function* linesOf(
  source: AsyncIterable<Uint8Array | string>,
  file: string,
): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let line = 1;
  let rest: string[] = [];
  let length = 0;
  const decode = (chunk?: Uint8Array): string => {
    try {
      return decoder.decode(chunk, { stream: chunk !== undefined });
    } catch (cause) {
      throw new AgstateError(
        "INVALID_ARGUMENT",
        `${file} is not UTF-8 text, at line ${line} or soon after; give OTLP JSON, and unpack it where it is compressed`,
        { file, line },
        { cause },
      );
    }
  };
  for await (const chunk of source) {
    const text = typeof chunk === "string" ? chunk : decode(chunk);
    let from = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", from)) {
      rest.push(text.slice(from, end));
      yield rest.join("");
      rest = [];
      length = 0;
      line++;
      from = end + 1;
    }
    rest.push(text.slice(from));
    length += text.length - from;
    checkLength(length, file, line);
  }
  rest.push(decode());
  const last = rest.join("");
  if (last !== "") yield last;
}

function checkLength(length: number, file: string, line: number): void {
  if (length <= DOCUMENT_MAX_LENGTH) return;
  throw new AgstateError(
    "LIMIT_EXCEEDED",
    `${at(file, line)} begins a document of more than ${DOCUMENT_MAX_LENGTH} characters; give smaller ones, a line each`,
    { file, line, limit: DOCUMENT_MAX_LENGTH },
  );
}

/** Times that are written as numbers: a double does not hold their nanoseconds. */
const NUMERIC_TIMES = /("(?:start|end)TimeUnixNano"\s*:\s*)(\d+)/g;

/** The value of a text; undefined where it is none. No document is one. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text.replace(NUMERIC_TIMES, '$1"$2"'));
  } catch {
    return undefined;
  }
}

/** Says what is wrong with a text that is not JSON. */
function refuse(text: string, file: string, line: number): never {
  try {
    parseStrictJson(text, at(file, line), { line });
  } catch (error) {
    if (!isAgstateError(error)) throw error;
    const { message, details } = error;
    throw new AgstateError(
      "INVALID_ARGUMENT",
      `${message}; cut off what is torn, or export it again`,
      { ...details, file, line: details.line ?? line },
      { cause: error },
    );
  }
  throw new AgstateError("INTERNAL", `${at(file, line)} is JSON after all`, { file, line });
}

/** Whether a line is an object, so that lines are documents. */
function isObjectAlone(text: string): boolean {
  const value = parsed(text);
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
