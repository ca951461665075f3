import { ZERO_ID } from "../core/ids.js";
import { reflogEntryText } from "../core/reflog-entry.js";
import { digestText } from "../objects/hash.js";
import type { RefRow, StoredReflogEntry } from "../storage/port.js";
import type { Repository } from "./repository.js";

/** How many entries of a log are read at once. */
const PAGE = 1000;

/** An entry of a chain that was gone through, and the hash that its bytes have. */
export interface ChainEntry {
  readonly entry: StoredReflogEntry;
  readonly actual: string;
}

/**
 * Goes through a ref's chain of log entries from the hash in its row down to the first entry, and tells what is wrong
 * with it. An entry that is lost ends it, since what lies below is found from it.
 *
 * @param problem is told of each thing that is wrong
 */
export async function* chainOf(
  { storage, workflow }: Repository,
  ref: RefRow,
  problem: (detail: string) => void,
): AsyncGenerator<ChainEntry, void, undefined> {
  let seq = ref.seq;
  let hash = ref.logHash;
  let target = ref.id ?? ZERO_ID;
  while (seq > 0) {
    const page = await storage.readReflog(workflow, ref.name, { limit: PAGE, fromSeq: seq });
    if (page.length === 0) return problem(`entry ${seq} is lost`);
    for (const entry of page) {
      if (entry.seq !== seq) return problem(`entry ${seq} is lost`);
      const actual = digestText(reflogEntryText(entry));
      if (actual !== hash) problem(`entry ${seq} was changed: it hashes to ${actual}`);
      if (entry.new !== target) problem(`entry ${seq} does not lead to ${target}`);
      yield { entry, actual };
      hash = entry.previous;
      target = entry.old;
      seq--;
    }
  }
  if (hash !== ZERO_ID) problem("the first entry continues an entry that is lost");
}
