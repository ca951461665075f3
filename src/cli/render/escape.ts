/**
 * Characters that could act on a terminal or deceive its reader: controls (C0,
 * C1, delete), format characters (bidirectional controls, zero-width marks) and
 * line and paragraph separators.
 */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** The same without line feed and tab. */
const UNSAFE_IN_TEXT = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Writes each UTF-16 unit as JSON would, so that escaped JSON stays JSON. */
function escapeChar(char: string): string {
  if (char === "\n") return "\\n";
  if (char === "\t") return "\\t";
  if (char === "\r") return "\\r";
  return [...Array(char.length).keys()]
    .map((i) => `\\u${char.charCodeAt(i).toString(16).padStart(4, "0")}`)
    .join("");
}

/** A stored text on one line, with nothing in it that acts on a terminal. */
export function escapeLine(text: string): string {
  return text.replace(UNSAFE, escapeChar);
}

/** A stored text with its line breaks and tabs kept, and nothing else in it that acts on a terminal. */
export function escapeText(text: string): string {
  return text.replace(UNSAFE_IN_TEXT, escapeChar);
}
