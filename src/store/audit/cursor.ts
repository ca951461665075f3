import { deflateRawSync, inflateRawSync } from "node:zlib";
import { AgstateError } from "../../core/errors.js";
import { digestText } from "../../objects/hash.js";

/** By full name of a ref, the number of the last entry of its log that was told. */
export type Told = Map<string, number>;

const VERSION = "1";
const TAG_HEX_DIGITS = 12;
/** More than the names of a million refs. */
const TEXT_MAX_BYTES = 256 * 1024 * 1024;

/** What tells a cursor of one workflow of a store from those of others. */
export function cursorTag(storeId: string, workflow: string): string {
  return digestText(`${storeId}\n${workflow}`).slice(0, TAG_HEX_DIGITS);
}

/**
 * A position in the stream of all events: of each ref's log, how far it was told. Nothing less would do: clocks of writers
 * differ, so an entry that lands later may be dated before all that was told.
 *
 * The text is `1.<tag>.<base64url>`; what is packed is a line `<length shared with the name before> <rest of the name>
 * <number>` a ref, sorted by name, deflated where that is shorter (a `z` before it says so).
 */
export function encodeCursor(tag: string, told: Told): string {
  let before = "";
  let text = "";
  for (const name of [...told.keys()].sort()) {
    let shared = 0;
    while (shared < before.length && name[shared] === before[shared]) shared++;
    // Not in the middle of a character, which UTF-8 could not hold.
    if (/^[\udc00-\udfff]/.test(name.slice(shared, shared + 1))) shared--;
    text += `${shared} ${name.slice(shared)} ${told.get(name)}\n`;
    before = name;
  }
  const plain = Buffer.from(text);
  const packed = deflateRawSync(plain);
  const body =
    packed.length < plain.length
      ? `z${packed.toString("base64url")}`
      : `-${plain.toString("base64url")}`;
  return `${VERSION}.${tag}.${body}`;
}

/** @throws AgstateError `INVALID_ARGUMENT` when it is no cursor, or one of another workflow */
export function decodeCursor(cursor: string, tag: string): Told {
  const parts = /^1\.([0-9a-f]{12})\.([z-])([\w-]*)$/.exec(String(cursor));
  if (parts === null) throw notACursor(cursor);
  if (parts[1] !== tag) {
    throw new AgstateError(
      "INVALID_ARGUMENT",
      "the cursor is of another workflow or of another store; take one that the audit of this workflow gave",
      { cursor },
    );
  }
  const told: Told = new Map();
  let before = "";
  for (const line of unpack(cursor, parts[2] === "z", parts[3] as string)
    .split("\n")
    .slice(0, -1)) {
    const [, shared, rest, seq] = /^(\d+) ([^\n]*) (\d+)$/.exec(line) ?? [];
    const name = before.slice(0, Number(shared)) + rest;
    if (!name.startsWith("refs/") || !Number.isSafeInteger(Number(seq))) throw notACursor(cursor);
    told.set(name, Number(seq));
    before = name;
  }
  return told;
}

function unpack(cursor: string, packed: boolean, body: string): string {
  const bytes = Buffer.from(body, "base64url");
  try {
    const plain = packed ? inflateRawSync(bytes, { maxOutputLength: TEXT_MAX_BYTES }) : bytes;
    return plain.toString();
  } catch {
    throw notACursor(cursor);
  }
}

function notACursor(cursor: unknown): AgstateError {
  return new AgstateError(
    "INVALID_ARGUMENT",
    "that is no cursor of an audit; give the text of a cursor member as agstate audit --json printed it, whole",
    { cursor: String(cursor) },
  );
}
