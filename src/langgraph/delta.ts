import {
  type CheckpointPendingWrite,
  type DeltaChannelHistory,
  type SerializerProtocol,
  TASKS,
} from "@langchain/langgraph-checkpoint";
import { placeAt, valueAt } from "../objects/decode.js";
import { type Ancestor, Ancestors } from "./ancestors.js";
import type { Thread } from "./thread.js";
import { fromStored } from "./values.js";
import type { CheckpointPlace, PendingWrites } from "./writes.js";

/** A channel's value at an ancestor, not read yet. */
type Seed = () => Promise<unknown>;

/** What channels that LangGraph stores by their writes are rebuilt from. */
export interface DeltaRequest extends CheckpointPlace {
  readonly channels: readonly string[];
}

/**
 * Reads of each channel what was written below the ancestors of a checkpoint, oldest first, up to the nearest
 * ancestor that has a value of the channel, which is the seed. As in LangGraph, the writes below that one belong to it.
 *
 * Of a page of ancestors it reads where their states begin, and the rows of writes in one call; decoded
 * is only what is answered.
 *
 * @throws AgstateError `MISSING_OBJECT`, `CORRUPT_OBJECT`, `ERASED`, `UNSUPPORTED_ENCODING`
 */
export async function deltaHistory(
  thread: Thread,
  writes: PendingWrites,
  serde: SerializerProtocol,
  { namespace, id, channels }: DeltaRequest,
): Promise<Record<string, DeltaChannelHistory>> {
  const newestFirst = new Map<string, CheckpointPendingWrite[]>();
  const seeds = new Map<string, unknown>();
  let open: ReadonlySet<string> = new Set(channels);
  for (const channel of open) newestFirst.set(channel, []);
  for await (const page of new Ancestors(thread, namespace).above(id)) {
    const wanted = new Map<string, ReadonlySet<string>>();
    const found: [string, Seed][] = [];
    for (const ancestor of page) {
      wanted.set(ancestor.frame.checkpoint.id, open);
      const here = await seedsAt(ancestor, open, writes, serde, namespace);
      found.push(...here);
      const names = new Set(here.map(([channel]) => channel));
      if (names.size > 0) open = new Set([...open].filter((channel) => !names.has(channel)));
      if (open.size === 0) break;
    }
    const places = [...wanted.keys()].map((each) => ({ namespace, id: each }));
    const [writesOf] = await Promise.all([
      writes.read(places, (place, channel) => wanted.get(place.id)?.has(channel) === true),
      ...found.map(async ([channel, seed]) => void seeds.set(channel, await seed())),
    ]);
    for (const place of places) {
      for (const write of writesOf(place).toReversed()) newestFirst.get(write[1])?.push(write);
    }
    if (open.size === 0) break;
  }
  const histories = [...newestFirst].map(([channel, collected]) => {
    const seed = seeds.has(channel) ? { seed: seeds.get(channel) } : {};
    return [channel, { writes: collected.reverse(), ...seed }] as const;
  });
  return Object.fromEntries(histories);
}

/** Those of the channels of which a checkpoint has a value. */
async function seedsAt(
  { frame, commit, objects }: Ancestor,
  channels: ReadonlySet<string>,
  writes: PendingWrites,
  serde: SerializerProtocol,
  namespace: string,
): Promise<[string, Seed][]> {
  const { v, parent } = frame.checkpoint;
  const { state } = commit.root;
  const seeds: [string, Seed][] = [];
  for (const channel of channels) {
    if (channel === TASKS && v < 4 && parent !== undefined) {
      seeds.push([channel, () => writes.sends({ namespace, id: parent })]);
      continue;
    }
    const place = state && (await placeAt(objects, state, [channel]));
    if (place === undefined) continue;
    seeds.push([channel, async () => fromStored(serde, await valueAt(objects, place))]);
  }
  return seeds;
}
