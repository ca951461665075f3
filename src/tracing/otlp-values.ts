import { AgstateError } from "../core/errors.js";
import { quoteForMessage } from "../core/names.js";
import type { SpanAttributes, SpanValue } from "./trace-span.js";

type Members = Readonly<Record<string, unknown>>;

/** Deeper values are no attributes that anybody sets. */
const DEPTH_MAX = 64;

/** A part of a document, and what messages call it: file, line and path. */
export interface Part {
  readonly value: unknown;
  readonly where: string;
}

/**
 * The error of a part that is not as OTLP has it.
 *
 * @param shown whether a text may be shown: attributes may hold what nobody is to read
 */
export function wrongPart({ value, where }: Part, wanted: string, shown = false): AgstateError {
  return new AgstateError(
    "INVALID_ARGUMENT",
    `${where} is ${nameOf(value, shown)}, and is to be ${wanted}; give spans in OTLP JSON, as a collector's file exporter writes them`,
    { where },
  );
}

function nameOf(value: unknown, shown: boolean): string {
  if (typeof value === "string") return shown ? quoteForMessage(value) : "a text";
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" && value !== null ? "an object" : String(value);
}

/** The members of an object; of one that is not there, none. */
export function membersOf(part: Part): Members {
  const { value } = part;
  if (value === undefined || value === null) return {};
  if (typeof value !== "object" || Array.isArray(value)) throw wrongPart(part, "an object");
  return value as Members;
}

/** The elements of a list; of one that is not there, none. */
export function elementsOf(part: Part): readonly unknown[] {
  const { value } = part;
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw wrongPart(part, "a list");
  return value;
}

export function textOf(part: Part): string {
  const { value } = part;
  if (value === undefined || value === null) return "";
  if (typeof value !== "string") throw wrongPart(part, "a text");
  return value;
}

/** An id in hex, given so or in base64; undefined where there is none. */
export function idOf(part: Part, bytes: number): string | undefined {
  const text = textOf(part);
  if (text === "") return undefined;
  const hex =
    text.length === bytes * 2
      ? text.toLowerCase()
      : Buffer.from(text, "base64")
          .toString("hex")
          .slice(0, BASE64.test(text) ? undefined : 0);
  if (hex.length !== bytes * 2 || !HEX.test(hex)) {
    throw wrongPart(part, `an id of ${bytes * 2} hex digits, or of ${bytes} bytes in base64`, true);
  }
  return /^0+$/.test(hex) ? undefined : hex;
}

const HEX = /^[0-9a-f]+$/;
const BASE64 = /^[A-Za-z0-9+/_-]+={0,2}$/;

/** Nanoseconds since the Unix epoch; 0 where nothing is said. */
export function nanosecondsOf(part: Part): bigint {
  const { value } = part;
  if (value === undefined || value === null) return 0n;
  if (typeof value === "string" && /^[0-9]{1,20}$/.test(value)) return BigInt(value);
  if (typeof value === "number" && Number.isInteger(value) && value >= 0) return BigInt(value);
  throw wrongPart(part, "a time in nanoseconds", true);
}

/** Attributes by their keys; of a key that stands twice the last. */
export function attributesOf(part: Part, depth = 0): SpanAttributes {
  const attributes = new Map<string, SpanValue>();
  const elements = elementsOf(part);
  for (let i = 0; i < elements.length; i++) {
    const where = `${part.where}[${i}]`;
    const { key, value } = membersOf({ value: elements[i], where });
    attributes.set(
      textOf({ value: key, where: `${where}.key` }),
      anyValueOf({ value, where }, depth),
    );
  }
  return attributes;
}

function anyValueOf(part: Part, depth: number): SpanValue {
  if (depth > DEPTH_MAX) throw wrongPart(part, `at most ${DEPTH_MAX} levels deep`);
  const members = membersOf(part);
  const { where } = part;
  if (typeof members.stringValue === "string") return members.stringValue;
  if (typeof members.boolValue === "boolean") return members.boolValue;
  const { intValue, doubleValue, bytesValue, arrayValue, kvlistValue } = members;
  if (intValue !== undefined && intValue !== null) {
    return integerOf({ value: intValue, where: `${where}.intValue` });
  }
  if (doubleValue !== undefined && doubleValue !== null) {
    // Those that JSON has no number for are texts.
    const number = Number(doubleValue);
    if (Number.isNaN(number) && doubleValue !== "NaN") {
      throw wrongPart({ value: doubleValue, where: `${where}.doubleValue` }, "a number");
    }
    return number;
  }
  if (typeof bytesValue === "string") return Uint8Array.from(Buffer.from(bytesValue, "base64"));
  if (arrayValue !== undefined && arrayValue !== null) {
    const list = { value: arrayValue, where: `${where}.arrayValue` };
    const values = { value: membersOf(list).values, where: `${list.where}.values` };
    return elementsOf(values).map((value, i) =>
      anyValueOf({ value, where: `${values.where}[${i}]` }, depth + 1),
    );
  }
  if (kvlistValue !== undefined && kvlistValue !== null) {
    const list = { value: kvlistValue, where: `${where}.kvlistValue` };
    return attributesOf(
      { value: membersOf(list).values, where: `${list.where}.values` },
      depth + 1,
    );
  }
  return null;
}

function integerOf(part: Part): number | bigint {
  const { value } = part;
  if (typeof value === "number") return value;
  if (typeof value !== "string" || !/^-?[0-9]{1,20}$/.test(value)) {
    throw wrongPart(part, "a whole number");
  }
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : BigInt(value);
}
