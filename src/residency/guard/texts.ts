import { isJsonObject, type JsonValue } from "../../core/json.js";

/** How often a text that holds escaped JSON is unescaped: JSON as a string in JSON is one, twice over two. */
const UNESCAPED_MAX = 3;

/** The strings of a value, keys included, depth first. */
export function* stringsOf(value: JsonValue): Generator<string, void, undefined> {
  if (typeof value === "string") yield value;
  else if (Array.isArray(value)) for (const element of value) yield* stringsOf(element);
  else if (isJsonObject(value)) {
    for (const key of Object.keys(value)) {
      yield key;
      yield* stringsOf(value[key] as JsonValue);
    }
  }
}

/** The text, and what it says where it holds escapes as JSON writes them. */
export function* readings(text: string): Generator<string, void, undefined> {
  yield text;
  let last = text;
  for (let i = 0; i < UNESCAPED_MAX && last.includes("\\"); i++) {
    const next = last.replace(ESCAPE, unescaped);
    if (next === last) return;
    yield next;
    last = next;
  }
}

const ESCAPE = /\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))/g;

const LETTERS: Readonly<Record<string, string>> = {
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
};

function unescaped(_: string, hex: string | undefined, letter: string | undefined): string {
  if (hex !== undefined) return String.fromCharCode(Number.parseInt(hex, 16));
  return LETTERS[letter as string] ?? (letter as string);
}
