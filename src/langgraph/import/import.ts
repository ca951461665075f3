import { isDeepStrictEqual } from "node:util";
import type {
  CheckpointMetadata,
  CheckpointPendingWrite,
  CheckpointTuple,
  PendingWrite,
} from "@langchain/langgraph-checkpoint";
import { WRITES_IDX_MAP } from "@langchain/langgraph-checkpoint";
import { AgstateError } from "../../core/errors.js";
import { hasOwn } from "../../core/json.js";
import { quoteForMessage } from "../../core/names.js";
import type { Store } from "../../store.js";
import { AgstateSaver } from "../saver.js";
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
  const saver = new AgstateSaver(store);
  // One that has not seen what the other wrote.
  const reader = new AgstateSaver(store);
  const done = { threads: 0, checkpoints: 0, writes: 0, verified: 0, skipped: 0 };
  let last: string | undefined;
  for await (const place of source.places()) {
    const tuple = await source.read(place);
    // Deleted meanwhile.
    if (tuple === undefined) continue;
    if (place.thread !== last) done.threads++;
    last = place.thread;
    let there = await reader.getTuple(configOf(place));
    if (there !== undefined) {
      if (lacksWritesOnly(tuple, there)) {
        await copyWrites(saver, place, tuple);
        there = await reader.getTuple(configOf(place));
      }
      check(place, tuple, there, "WORKFLOW_EXISTS");
      done.skipped++;
    } else {
      await copy(saver, place, tuple);
      check(place, tuple, await reader.getTuple(configOf(place)), "STORE_DAMAGED");
    }
    done.checkpoints++;
    done.verified++;
    done.writes += tuple.pendingWrites?.length ?? 0;
    onProgress(done);
  }
  return done;
}

async function copy(
  saver: AgstateSaver,
  place: CheckpointPlace,
  tuple: CheckpointTuple,
): Promise<void> {
  const { checkpoint, metadata, parentConfig } = tuple;
  await copyWrites(saver, place, tuple);
  const parent = { ...place, id: parentConfig?.configurable?.checkpoint_id };
  // Named as new, a channel has the value that the source says, whatever the parent had.
  const names = Object.keys({ ...checkpoint.channel_values, ...checkpoint.channel_versions });
  const versions = names.map((name) => [name, checkpoint.channel_versions[name] ?? 0]);
  await saver.put(
    configOf(parent),
    checkpoint,
    metadata as CheckpointMetadata,
    Object.fromEntries(versions),
  );
}

async function copyWrites(
  saver: AgstateSaver,
  place: CheckpointPlace,
  { pendingWrites = [] }: CheckpointTuple,
): Promise<void> {
  for (const [task, writes] of byTask(pendingWrites)) {
    await saver.putWrites(configOf(place), inPlace(writes), task);
  }
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
  place: CheckpointPlace,
  source: CheckpointTuple,
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

function configOf(place: { thread: string; namespace: string; id?: string | undefined }) {
  const { thread, namespace, id } = place;
  return {
    configurable: {
      thread_id: thread,
      checkpoint_ns: namespace,
      ...(id !== undefined && { checkpoint_id: id }),
    },
  };
}
