import { AgstateError } from "../../core/errors.js";
import { PriorityQueue } from "../../merge/priority-queue.js";
import { shortRefName } from "../../refs/names.js";
import type { RefRow, Storage, StoredReflogEntry } from "../../storage/port.js";
import type { Told } from "./cursor.js";

/** How many entries are held for all refs together, about; of each at least a few are read at once. */
const HELD_ENTRIES = 64_000;
const PAGE_MIN = 16;
const PAGE_MAX = 1000;
/** A log is read in no more pages than this: to find a page, a backend may walk from the log's end. */
const PAGES_MAX = 16;

/** What is read of one log: from the entry after the last that was told to the last of its row. */
interface Lane {
  readonly ref: string;
  readonly end: number;
  readonly page: number;
  /** The last entry that was read. */
  read: number;
  /** Those that were read and not given, the next one last. */
  held: StoredReflogEntry[];
}

/**
 * The entries of logs that lie beyond what was told, by time, then name of the ref; but each after the one
 * before it in its own log, whatever its date.
 *
 * The order of what comes next depends on nothing but how far each log was told: taken up anew from there, it goes
 * on as it would have gone on.
 *
 * @param most no more than so many will be asked for
 * @throws AgstateError `STORE_DAMAGED` where a log lacks an entry
 */
export async function* mergeLogs(
  storage: Storage,
  workflow: string,
  rows: readonly RefRow[],
  told: Readonly<Pick<Told, "get">>,
  most: number,
): AsyncGenerator<StoredReflogEntry, void, undefined> {
  const behind = rows.filter((row) => (told.get(row.name) ?? 0) < row.seq);
  const share = Math.floor(HELD_ENTRIES / Math.max(1, behind.length));
  const small = Math.min(Math.max(share, PAGE_MIN), PAGE_MAX, most);
  const queue = new PriorityQueue<Lane>((a, b) => compare(head(a), head(b)));
  for (const { name, seq } of behind) {
    const read = told.get(name) ?? 0;
    const page = Math.max(small, Math.min(most, Math.ceil((seq - read) / PAGES_MAX)));
    const lane: Lane = { ref: name, end: seq, page, read, held: [] };
    await fill(storage, workflow, lane);
    queue.push(lane);
  }
  for (let lane = queue.pop(); lane !== undefined; lane = queue.pop()) {
    yield lane.held.pop() as StoredReflogEntry;
    if (lane.held.length === 0 && lane.read < lane.end) await fill(storage, workflow, lane);
    if (lane.held.length > 0) queue.push(lane);
  }
}

async function fill(storage: Storage, workflow: string, lane: Lane): Promise<void> {
  const to = Math.min(lane.end, lane.read + lane.page);
  const wanted = to - lane.read;
  const page = await storage.readReflog(workflow, lane.ref, { limit: wanted, fromSeq: to });
  const whole = page.every(({ seq }, i) => seq === to - i);
  if (page.length < wanted || !whole) throw entryLost(lane.ref, to - page.length);
  lane.read = to;
  lane.held = page;
}

function head(lane: Lane): StoredReflogEntry {
  return lane.held.at(-1) as StoredReflogEntry;
}

function compare(a: StoredReflogEntry, b: StoredReflogEntry): number {
  return a.time - b.time || (a.ref < b.ref ? -1 : a.ref > b.ref ? 1 : a.seq - b.seq);
}

function entryLost(ref: string, seq: number): AgstateError {
  return new AgstateError(
    "STORE_DAMAGED",
    `the log of ${shortRefName(ref)} has no entry ${seq}; run agstate audit verify to see what is wrong`,
    { ref, seq },
  );
}
