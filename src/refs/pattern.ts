import { AgstateError } from "../core/errors.js";
import { quoteForMessage } from "../core/names.js";
import type { RefPattern } from "../storage/port.js";
import { checkRefComponent, refCandidates } from "./names.js";

/** The longest pattern, in bytes: a longer one matches no name that there can be. */
const PATTERN_MAX_BYTES = 1024;

/** Which refs somebody means. */
export interface RefMatcher {
  /** What to read: these refs, and perhaps others. */
  readonly read: RefPattern;
  matches(ref: string): boolean;
}

/**
 * Reads a pattern of refs: a name, full or short, such as `canonical` or
 * `booker/try-1`; one with `*` for any text, slashes included, such as
 * `agents/booker/*`; or one that ends in `/`, for all below it. `*` alone means all.
 *
 * @throws AgstateError `INVALID_NAME`, `LIMIT_EXCEEDED`
 */
export function parseRefPattern(text: string): RefMatcher {
  checkPattern(text);
  const pattern = withStar(text);
  const candidates = refCandidates(pattern);
  if (!pattern.includes("*")) {
    const names = new Set(candidates);
    return { read: { names: candidates }, matches: (ref) => names.has(ref) };
  }
  const globs = candidates.map((candidate) => candidate.split("*"));
  const [only] = globs as [string[]];
  return {
    read: { prefix: globs.length === 1 ? (only[0] as string) : "refs/", deleted: true },
    matches: (ref) => globs.some((parts) => matchesParts(ref, parts)),
  };
}

function withStar(text: string): string {
  return text.endsWith("/") ? `${text}*` : text;
}

function checkPattern(given: unknown): void {
  const text = typeof given === "string" ? given : "";
  const bytes = Buffer.byteLength(text);
  if (bytes > PATTERN_MAX_BYTES) {
    throw new AgstateError(
      "LIMIT_EXCEEDED",
      `the pattern of refs has ${bytes} bytes; at most ${PATTERN_MAX_BYTES} are allowed`,
      { bytes, limit: PATTERN_MAX_BYTES },
    );
  }
  try {
    // What a star may stand for is no matter: a letter stands in for it.
    for (const part of withStar(text).split("/")) {
      checkRefComponent("component", part.replaceAll("*", "x"));
    }
  } catch (error) {
    throw new AgstateError(
      "INVALID_NAME",
      `ref pattern ${quoteForMessage(String(given))} can match no ref: ${(error as Error).message}`,
      { field: "pattern", name: String(given) },
      { cause: error },
    );
  }
}

/** Whether a text is these parts in this order, with any text between them; the earliest fit is as good as any. */
function matchesParts(text: string, parts: readonly string[]): boolean {
  const first = parts[0] as string;
  const last = parts.at(-1) as string;
  if (!text.startsWith(first) || !text.endsWith(last)) return false;
  let at = first.length;
  for (const part of parts.slice(1, -1)) {
    const found = text.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return at <= text.length - last.length;
}
