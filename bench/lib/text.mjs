/**
 * Text that looks like what agents keep: words, numbers and ids, never the same twice.
 *
 * It comes from a seed, so that every contestant of a run, and every run, gets the same bytes.
 */
const WORDS = (
  "the a of to and in for is on that with as it was by are this be from at not have or an has can " +
  "flight booking customer refund policy search result query order invoice payment account agent " +
  "tool call failed returned checked updated created changed because although before after seat " +
  "price currency total item list summary report error timeout retry response request page table " +
  "record status pending confirmed cancelled delivered address email number date week morning " +
  "evening available unavailable option option-a option-b cheaper faster next previous first last"
).split(" ");

/** A stream of pseudo-random 32-bit numbers: xorshift32 (Marsaglia 2003). */
function numbers(seed) {
  let x = (seed * 2654435761) >>> 0 || 1;
  return () => {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    x >>>= 0;
    return x;
  };
}

/** Makes a function that gives texts of exactly `length` ASCII characters, none of which JSON escapes. */
export function textSource(seed) {
  const next = numbers(seed);
  const token = () => {
    const n = next() % 16;
    if (n === 0) return String(next() % 100_000);
    if (n === 1) return `id-${next().toString(36)}`;
    return WORDS[next() % WORDS.length];
  };
  return (length) => {
    let text = "";
    while (text.length < length) text += `${token()}${next() % 9 === 0 ? ". " : " "}`;
    // As parsed JSON has it: one flat string, not a rope that the first reader must pull taut.
    return Buffer.from(text.slice(0, length)).toString("latin1");
  };
}
