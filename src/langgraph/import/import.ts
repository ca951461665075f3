import { isDeepStrictEqual } from "node:util";
import type {
  CheckpointPendingWrite,
  CheckpointTuple,
  PendingWrite,
} from "@langchain/langgraph-checkpoint";
import { WRITES_IDX_MAP } from "@langchain/langgraph-checkpoint";
import { AgstateError } from "../../core/errors.js";
import { hasOwn } from "../../core/json.js";
import { quoteForMessage } from "../../core/names.js";
import type { Store } from "../../store.js";
import type { CheckpointOfThread } from "../thread.js";
import { BulkSaver, configOf, keyOf } from "./bulk.js";
import type { CheckpointPlace, CheckpointSource } from "./source.js";

/** What an import did. */
export interface CheckpointImport {
  threads: number;
  /** Checkpoints that the source has: those that were imported now, and those that were there. */
  checkpoints: number;
  /** Pending writes of all these checkpoints. */
  writes: number;
  /** Checkpoints that were read back and equal their source. */
  verified: number;
  /** Checkpoints that were there already. */
  skipped: number;
}

/** How many checkpoints of a thread are read, written and read back together. */
const TOGETHER = 32;

/** How many threads are copied at a time. */
const THREADS_AT_A_TIME = 4;

/**
 * Copies all checkpoints of a source into a store, and reads each back; run again, it goes on where it stopped.
 *
 * What the tasks wrote below a checkpoint comes before the checkpoint, so one that is there is there whole.
 *
 * @throws AgstateError `WORKFLOW_EXISTS` when the store has a checkpoint that differs from the source's,
 * which is left as it is; `STORE_DAMAGED` when one reads back otherwise than it was written
 */
export async function importCheckpoints(
  source: CheckpointSource,
  store: Store,
  onProgress: (done: CheckpointImport) => void = () => {},
): Promise<CheckpointImport> {
  const run: Run = {
    source,
    saver: new BulkSaver(store),
    reader: new BulkSaver(store),
    done: { threads: 0, checkpoints: 0, writes: 0, verified: 0, skipped: 0 },
    onProgress,
  };
  const threads = byThread(source.places());
  // Each takes the next thread; when one fails, the others end with the thread that they have.
  let failed = false;
  const copyThreads = async () => {
    try {
      for (;;) {
        const next = failed ? undefined : await threads.next();
        if (next === undefined || next.done) return;
        await importThread(run, next.value);
      }
    } catch (error) {
      failed = true;
      throw error;
    }
  };
  const all = await Promise.allSettled(Array.from({ length: THREADS_AT_A_TIME }, copyThreads));
  for (const each of all) if (each.status === "rejected") throw each.reason;
  return run.done;
}

interface Run {
  readonly source: CheckpointSource;
  readonly saver: BulkSaver;
  /** One that has not seen what the other wrote. */
  readonly reader: BulkSaver;
  readonly done: CheckpointImport;
  readonly onProgress: (done: CheckpointImport) => void;
}

/** A checkpoint of the source. */
interface Wanted {
  readonly place: CheckpointPlace;
  readonly tuple: CheckpointTuple;
}

async function* byThread(
  places: AsyncIterable<CheckpointPlace>,
): AsyncGenerator<CheckpointPlace[], undefined, undefined> {
  let thread: CheckpointPlace[] = [];
  for await (const place of places) {
    if (thread[0] !== undefined && thread[0].thread !== place.thread) {
      yield thread;
      thread = [];
    }
    thread.push(place);
  }
  if (thread.length > 0) yield thread;
}

async function importThread(run: Run, places: readonly CheckpointPlace[]): Promise<void> {
  const { source, reader, done } = run;
  const { thread } = places[0] as CheckpointPlace;
  const there = await reader.checkpointsOf(thread);
  const verified: CheckpointOfThread[] = [];
  for (let from = 0; from < places.length; from += TOGETHER) {
    const page = places.slice(from, from + TOGETHER);
    const read = await Promise.all(page.map((place) => source.read(place)));
    // One that is not read was deleted meanwhile.
    const wanted = page.flatMap((place, i) => (read[i] ? [{ place, tuple: read[i] }] : []));
    if (verified.length === 0 && wanted.length > 0) done.threads++;
    const [old, fresh] = [true, false].map((is) =>
      wanted.filter(({ place }) => there.has(keyOf(place)) === is),
    ) as [Wanted[], Wanted[]];
    const known = old.map(({ place }) => there.get(keyOf(place)) as CheckpointOfThread);
    await checkOld(run, old, known);
    await Promise.all(fresh.map((each) => copyWrites(run.saver, each)));
    const put = await run.saver.putAll(thread, fresh);
    const stored = await reader.read(thread, put);
    for (const [i, each] of fresh.entries()) check(each, stored[i], "STORE_DAMAGED");
    verified.push(...known, ...put);
    done.skipped += old.length;
    done.checkpoints += wanted.length;
    done.verified += wanted.length;
    for (const { tuple } of wanted) done.writes += tuple.pendingWrites?.length ?? 0;
    run.onProgress(done);
  }
  // What was read by its commit is also what its thread lists.
  const listed = await reader.checkpointsOf(thread);
  const lost = verified.find((each) => listed.get(keyOf(each))?.at !== each.at);
  if (lost === undefined) return;
  throw new AgstateError(
    "STORE_DAMAGED",
    `checkpoint ${quoteForMessage(lost.id)} of thread ${quoteForMessage(thread)}, namespace ${quoteForMessage(lost.namespace)}, was imported, but its thread does not list it; if nobody else wrote to the thread meanwhile, run agstate fsck`,
    { thread, namespace: lost.namespace, id: lost.id },
  );
}

/** Compares checkpoints that were there already, after adding what the source's tasks have written since. */
async function checkOld(
  { saver, reader }: Run,
  old: readonly Wanted[],
  known: readonly CheckpointOfThread[],
): Promise<void> {
  const thread = old[0]?.place.thread;
  if (thread === undefined) return;
  let stored = await reader.read(thread, known);
  const behind = old.filter(({ tuple }, i) => stored[i] && lacksWritesOnly(tuple, stored[i]));
  if (behind.length > 0) {
    await Promise.all(behind.map((each) => copyWrites(saver, each)));
    stored = await reader.read(thread, known);
  }
  for (const [i, each] of old.entries()) check(each, stored[i], "WORKFLOW_EXISTS");
}

async function copyWrites(
  saver: BulkSaver,
  { place, tuple: { pendingWrites = [] } }: Wanted,
): Promise<void> {
  await Promise.all(
    byTask(pendingWrites).map(([task, writes]) =>
      saver.putWrites(configOf(place), inPlace(writes), task),
    ),
  );
}

/** Whether the source's tasks have written more since the checkpoint was imported, and nothing else. */
function lacksWritesOnly(source: CheckpointTuple, stored: CheckpointTuple): boolean {
  const [has, wants] = [stored.pendingWrites ?? [], source.pendingWrites ?? []];
  return (
    has.length < wants.length &&
    has.every((write) => wants.some((wanted) => isDeepStrictEqual(wanted, write)))
  );
}

/** Writes in an order that gives each the index that it had: LangGraph's special ones have theirs by name. */
function inPlace(writes: readonly CheckpointPendingWrite[]): PendingWrite[] {
  const isSpecial = ([, channel]: CheckpointPendingWrite) => hasOwn(WRITES_IDX_MAP, channel);
  const plain = writes.filter((write) => !isSpecial(write));
  return [...plain, ...writes.filter(isSpecial)].map(([, channel, value]) => [channel, value]);
}

/** The writes of each task, tasks by code units: databases sort them each in its own way. */
function byTask(writes: readonly CheckpointPendingWrite[]) {
  const tasks = new Map<string, CheckpointPendingWrite[]>();
  for (const write of writes) {
    const of = tasks.get(write[0]);
    if (of === undefined) tasks.set(write[0], [write]);
    else of.push(write);
  }
  return [...tasks].sort(([a], [b]) => (a < b ? -1 : 1));
}

function check(
  { place, tuple: source }: Wanted,
  stored: CheckpointTuple | undefined,
  code: "WORKFLOW_EXISTS" | "STORE_DAMAGED",
): void {
  const parts = (tuple: CheckpointTuple | undefined): Record<string, unknown> => ({
    config: tuple?.config.configurable,
    checkpoint: tuple?.checkpoint,
    metadata: tuple?.metadata,
    parentConfig: tuple?.parentConfig?.configurable,
    pendingWrites: byTask(tuple?.pendingWrites ?? []),
  });
  const [a, b] = [parts(source), parts(stored)];
  const differs = Object.keys(a).filter((name) => !isDeepStrictEqual(a[name], b[name]));
  if (differs.length === 0) return;
  const { thread, namespace, id } = place;
  const what = `checkpoint ${quoteForMessage(id)} of thread ${quoteForMessage(thread)}, namespace ${quoteForMessage(namespace)},`;
  throw new AgstateError(
    code,
    code === "WORKFLOW_EXISTS"
      ? `the store has ${what} already, and it differs from the source's in ${differs.join(", ")}; nothing of it was changed: import into another store, or delete the thread there first`
      : `${what} reads back from the store otherwise than the source has it, in ${differs.join(", ")}; run agstate fsck`,
    { ...place, differs },
  );
}
