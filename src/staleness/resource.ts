import { MAX_COMMIT_SECONDS } from "../core/clock.js";
import { AgstateError } from "../core/errors.js";
import { isJsonObject } from "../core/json.js";
import { isOneLine, quoteForMessage } from "../core/names.js";
import { parseTolerance } from "./tolerance.js";
import type { Resource } from "./types.js";

/** Most resources of one envelope, and of one check. */
export const RESOURCES_MAX = 10_000;
/** Longest id of a resource, in bytes of UTF-8. */
const RESOURCE_ID_MAX_BYTES = 4096;
/** Longest version of a resource, in bytes of UTF-8. */
export const RESOURCE_VERSION_MAX_BYTES = 4096;

const TYPE = /^[a-z][a-z0-9._+-]{0,99}$/i;
const MEMBERS = ["type", "id", "version", "tolerance", "observedAt", "steps"];

/** What a resource is read with. */
export interface ReadResource {
  /** When it counts as observed where it does not say so, in milliseconds since the Unix epoch. */
  readonly now: number;
}

/**
 * Checks a resource as a caller or an envelope names it. Of a resource that says only its type and id no version is known, it
 * was observed now, and only what has not changed lets work go on.
 *
 * @throws AgstateError `INVALID_VALUE`, `LIMIT_EXCEEDED`, naming the member in `details.field`; never what an id holds
 */
export function checkResource(given: unknown, { now }: ReadResource): Resource {
  if (!isJsonObject(given)) {
    throw invalid("resource", "is not an object such as { type, id, version }");
  }
  for (const key of Object.keys(given)) {
    if (MEMBERS.includes(key)) continue;
    throw invalid(
      "resource",
      `has the member ${quoteForMessage(key)}; known are ${MEMBERS.join(", ")}`,
    );
  }
  const { type, version, tolerance } = given;
  if (typeof type !== "string" || !TYPE.test(type)) {
    throw invalid(
      "type",
      "is not the name of a checker: a letter, then up to 99 letters, digits and . _ + -, such as http",
    );
  }
  return {
    type,
    id: lineAt("id", given.id, RESOURCE_ID_MAX_BYTES),
    version:
      version === undefined || version === null
        ? null
        : lineAt("version", version, RESOURCE_VERSION_MAX_BYTES),
    tolerance: tolerance === undefined ? "exact" : parseTolerance(tolerance),
    observedAt: timeAt(given.observedAt === undefined ? now : given.observedAt),
    steps: stepsAt(given.steps === undefined ? [] : given.steps),
  };
}

/**
 * Checks a list of resources, such as an envelope's.
 *
 * @throws AgstateError as `checkResource`, with the place in the list as a JSON Pointer in `details.at`
 */
export function checkResourceList(given: unknown, how: ReadResource): Resource[] {
  if (!Array.isArray(given)) throw invalid("resources", "is not a list of resources");
  if (given.length > RESOURCES_MAX) {
    throw new AgstateError(
      "LIMIT_EXCEEDED",
      `${given.length} resources are given; at most ${RESOURCES_MAX} are allowed`,
      { field: "resources", count: given.length, limit: RESOURCES_MAX },
    );
  }
  return Array.from(given, (one: unknown, i) => {
    try {
      return checkResource(one, how);
    } catch (error) {
      if (!(error instanceof AgstateError)) throw error;
      const { code, message, details } = error;
      throw new AgstateError(code, `resource ${i}: ${message}`, { ...details, at: `/${i}` });
    }
  });
}

/** What is wrong with a text that has to be one line of bounded length, in words; null when nothing is. */
export function lineProblem(text: unknown, maxBytes: number): string | null {
  if (typeof text !== "string") return "is not a string";
  if (text === "") return "is empty";
  if (!text.isWellFormed()) return "holds a lone surrogate, which UTF-8 cannot hold";
  if (!isOneLine(text)) return "holds a control character or a line break; it must be one line";
  const size = Buffer.byteLength(text);
  return size > maxBytes ? `is ${size} bytes long; at most ${maxBytes} are allowed` : null;
}

function lineAt(field: string, given: unknown, maxBytes: number): string {
  const problem = lineProblem(given, maxBytes);
  if (problem === null) return given as string;
  const tooLong = typeof given === "string" && Buffer.byteLength(given) > maxBytes;
  throw new AgstateError(
    tooLong ? "LIMIT_EXCEEDED" : "INVALID_VALUE",
    `${field} ${problem}${field === "version" && given === "" ? "; leave it out where none is known" : ""}`,
    { field },
  );
}

function timeAt(given: unknown): number {
  const time = given instanceof Date ? given.getTime() : given;
  if (Number.isSafeInteger(time) && (time as number) >= 0) {
    if ((time as number) <= MAX_COMMIT_SECONDS * 1000) return time as number;
  }
  throw invalid(
    "observedAt",
    "is not a time: a Date, or whole milliseconds since 1970, up to 9999",
  );
}

function stepsAt(given: unknown): readonly number[] {
  const steps = Array.isArray(given) ? Array.from(given) : [Number.NaN];
  if (!steps.every((step) => Number.isSafeInteger(step) && step >= 0)) {
    throw invalid("steps", "is not a list of numbers of steps");
  }
  return [...new Set(steps as number[])].sort((a, b) => a - b);
}

function invalid(field: string, problem: string): AgstateError {
  return new AgstateError("INVALID_VALUE", `${field} ${problem}`, { field });
}
