import stringWidth from "string-width";

/** The columns that output is made for. */
export const WIDTH = 80;

const graphemes = new Intl.Segmenter("und", { granularity: "grapheme" });

/** Cuts a text to a width in columns; wide characters count as the two that they take. */
export function cutTo(text: string, width: number): string {
  // A character takes two columns at most, so that a long text need not be measured whole.
  const short = text.length > 4 * width ? text.slice(0, 4 * width) : text;
  if (short.length === text.length && stringWidth(text) <= width) return text;
  let cut = "";
  let left = width - 3;
  for (const { segment } of graphemes.segment(short)) {
    left -= stringWidth(segment);
    if (left < 0) break;
    cut += segment;
  }
  return `${cut}...`;
}

/** How much of what two texts share is kept before the place where they differ. */
const CONTEXT_LENGTH = 16;

/** Cuts two texts to a width so that the place where they begin to differ stays in sight. */
export function cutBothTo(a: string, b: string, width: number): [string, string] {
  const shorter = Math.min(a.length, b.length);
  let shared = 0;
  while (shared < shorter && a[shared] === b[shared]) shared++;
  const longest = Math.max(a.length, b.length);
  if (longest <= width / 2 || shared < width / 2) return [cutTo(a, width), cutTo(b, width)];
  let from = shared - CONTEXT_LENGTH;
  // Not in the middle of a character.
  if (/[\udc00-\udfff]/.test(a[from] as string)) from--;
  const tail = (text: string) => `...${cutTo(text.slice(from), width - 3)}`;
  return [tail(a), tail(b)];
}
