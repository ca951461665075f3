import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Reads a file of a control group, or null where the kernel has no such file. */
export function read(group: string, file: string): string | null {
  try {
    return readFileSync(join(group, file), "utf8").trim();
  } catch {
    return null;
  }
}

/** Writes a file of a control group; answers whether the kernel took it. */
export function write(group: string, file: string, value: string | number): boolean {
  try {
    // A file that is not there cannot be made: the flag keeps that from being tried.
    writeFileSync(join(group, file), `${value}`, { flag: "r+" });
    return true;
  } catch {
    return false;
  }
}

/** Finds the number after a word in a file of a control group, or null. */
export function count(group: string, file: string, word: string): number | null {
  const line = read(group, file)
    ?.split("\n")
    .find((each) => each.startsWith(`${word} `));
  return line === undefined ? null : Number(line.slice(word.length + 1));
}
