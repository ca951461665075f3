/** Longest commit message that an import writes, in characters (code points). */
const MESSAGE_MAX_LENGTH = 72;

/** How much of a text is looked at, in UTF-16 units; white space before it ends can only make the line shorter. */
const LOOK_AT = 2000;

/**
 * Puts a text on one line of at most 72 characters, for `log --oneline`.
 *
 * White space and control characters become one space; invisible characters
 * that reorder text are dropped; a longer text is cut between characters and
 * ends in `...`. The result is well-formed Unicode whatever the text is.
 */
export function oneLine(text: string): string {
  const clean = text
    .slice(0, LOOK_AT)
    .toWellFormed()
    .replace(/[\u200b\u200e\u200f\u2060-\u206f\u202a-\u202e\ufeff]/gu, "")
    .replace(/[\s\p{Cc}]+/gu, " ")
    .trim();
  const characters = Array.from(clean);
  if (characters.length <= MESSAGE_MAX_LENGTH && text.length <= LOOK_AT) return clean;
  return `${characters
    .slice(0, MESSAGE_MAX_LENGTH - 3)
    .join("")
    .trimEnd()}...`;
}
