import { inPages } from "./pages.js";
import type { CheckpointFrame } from "./record.js";
import type { CheckpointOfThread, Thread } from "./thread.js";

/** How many checkpoints one call reads. */
const PAGE = 100;

/** How many frames the first call reads for a filter, where they are not in their commits' rows. */
const FRAMES_FIRST = 16;

/** Which checkpoints of a thread are listed. */
export interface ListRequest {
  /** Of all namespaces, when none is named. */
  readonly namespace?: string | undefined;
  /** The one of this id. */
  readonly only?: string | undefined;
  /** Those whose id, as a string, is below this one. */
  readonly before?: string | undefined;
  /** So many at most. */
  readonly limit: number;
  /** Those of which this holds, which is asked of no more than are needed. */
  readonly matches?: ((frame: CheckpointFrame) => Promise<boolean>) | undefined;
}

/**
 * Finds checkpoints of a thread by falling id, a page at a time, and reads of none its state.
 *
 * Ids need not rise with time, so all of them are read first, with the rows of their commits.
 */
export async function* listPages(
  thread: Thread,
  { namespace, only, before, limit, matches }: ListRequest,
): AsyncGenerator<CheckpointOfThread[], void, undefined> {
  const wanted = new Map<string, CheckpointOfThread>();
  for await (const found of thread.checkpoints(namespace)) {
    if ((only && found.id !== only) || (before && found.id >= before)) continue;
    const key = JSON.stringify([found.id, found.namespace]);
    // Of a checkpoint that was put twice the newer one comes first.
    if (!wanted.has(key)) wanted.set(key, found);
  }
  const sorted = [...wanted.values()].sort((a, b) => (a.id < b.id ? 1 : a.id > b.id ? -1 : 0));
  const matching = matches === undefined ? sorted : filtered(thread, sorted, matches);
  yield* inPages(take(matching, limit), limit, PAGE);
}

async function* filtered(
  thread: Thread,
  sorted: readonly CheckpointOfThread[],
  matches: (frame: CheckpointFrame) => Promise<boolean>,
): AsyncGenerator<CheckpointOfThread, void, undefined> {
  for await (const page of inPages(sorted, FRAMES_FIRST, PAGE)) {
    await thread.readFramesAhead(page);
    for (const each of page) if (await matches(await thread.frame(each.at))) yield each;
  }
}

async function* take<T>(
  items: AsyncIterable<T> | Iterable<T>,
  limit: number,
): AsyncGenerator<T, void, undefined> {
  let left = limit;
  if (left <= 0) return;
  for await (const item of items) {
    yield item;
    if (--left <= 0) return;
  }
}
