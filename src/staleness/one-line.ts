// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const GAPS = /[\s\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]+/g;

/** Longest text for people that is taken from a checker, in UTF-16 units. */
const SHOWN_MAX_LENGTH = 200;

/**
 * What somebody else wrote, as people may be shown it: one line, no control characters and none that turn the
 * direction of the line, cut where it is too long.
 */
export function oneLine(text: string, maxLength = SHOWN_MAX_LENGTH): string {
  const line = text.toWellFormed().replace(GAPS, " ").trim();
  if (line.length <= maxLength) return line;
  // Half a character at the cut is none.
  return `${line.slice(0, maxLength - 3).replace(/[\ud800-\udbff]$/, "")}...`;
}
