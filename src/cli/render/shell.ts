import { escapeLine } from "./escape.js";

/** The longest word that is put into a suggested command, in characters. */
const WORD_MAX_LENGTH = 60;

/** A text as one word of a shell's command line; undefined when it is too long or not safe to show as it is. */
export function shellWord(text: string): string | undefined {
  if (text.length > WORD_MAX_LENGTH || escapeLine(text) !== text) return undefined;
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  return `'${text.replaceAll("'", "'\\''")}'`;
}
