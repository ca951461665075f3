import { AgstateError } from "./errors.js";
import { quoteForMessage } from "./names.js";

/**
 * Splits a JSON Pointer (RFC 6901) into its unescaped tokens; the empty
 * pointer is the whole value.
 *
 * @throws AgstateError `INVALID_PATH`
 */
export function parsePointer(pointer: string): string[] {
  if (typeof pointer !== "string") {
    throw new AgstateError("INVALID_PATH", `the path is ${String(pointer)}, not a string`);
  }
  if (pointer === "") return [];
  if (!pointer.startsWith("/")) {
    throw new AgstateError(
      "INVALID_PATH",
      `path ${quoteForMessage(pointer)} does not begin with "/"; write it as a JSON Pointer, such as /messages/0`,
      { path: pointer },
    );
  }
  return pointer
    .slice(1)
    .split("/")
    .map((token) => unescapeToken(token, pointer));
}

function unescapeToken(token: string, pointer: string): string {
  if (!token.includes("~")) return token;
  if (/~(?![01])/.test(token)) {
    throw new AgstateError(
      "INVALID_PATH",
      `path ${quoteForMessage(pointer)} has a "~" that is not "~0" or "~1"; write "~" as "~0" and "/" as "~1"`,
      { path: pointer },
    );
  }
  return token.replaceAll("~1", "/").replaceAll("~0", "~");
}

/** Writes tokens as a JSON Pointer (RFC 6901). */
export function formatPointer(tokens: readonly (string | number)[]): string {
  let pointer = "";
  for (const token of tokens) {
    pointer += `/${String(token).replaceAll("~", "~0").replaceAll("/", "~1")}`;
  }
  return pointer;
}

const INDEX = /^(0|[1-9][0-9]*)$/;

/** Reads an array index token: decimal without leading zeros; undefined when it is none. */
export function parseIndex(token: string): number | undefined {
  if (!INDEX.test(token)) return undefined;
  const index = Number(token);
  return Number.isSafeInteger(index) ? index : undefined;
}
