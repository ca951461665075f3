import type { CheckpointMetadata, CheckpointTuple } from "@langchain/langgraph-checkpoint";
import { AgstateSaver } from "../saver.js";
import type { CheckpointOfThread } from "../thread.js";
import type { CheckpointPlace } from "./source.js";

/** A place as LangGraph's calls name it. */
export function configOf(place: { thread: string; namespace: string; id?: string | undefined }) {
  const { thread, namespace, id } = place;
  return {
    configurable: {
      thread_id: thread,
      checkpoint_ns: namespace,
      ...(id !== undefined && { checkpoint_id: id }),
    },
  };
}

/** Names a checkpoint within its thread. */
export function keyOf({ namespace, id }: { namespace: string; id: string }): string {
  return JSON.stringify([namespace, id]);
}

/** A saver that puts and reads many checkpoints of a thread at a time. */
export class BulkSaver extends AgstateSaver {
  /** The checkpoints that a list of the thread has, by key; none of a thread that is not there. */
  async checkpointsOf(thread: string): Promise<Map<string, CheckpointOfThread>> {
    const found = new Map<string, CheckpointOfThread>();
    const open = await this.threads.find(thread);
    if (open === undefined) return found;
    for await (const each of open.checkpoints.checkpoints(undefined)) {
      // Of one that was put twice the newer comes first.
      if (!found.has(keyOf(each))) found.set(keyOf(each), each);
    }
    return found;
  }

  /** Reads checkpoints of a thread with their writes; the answer has the order given. */
  async read(thread: string, page: readonly CheckpointOfThread[]): Promise<CheckpointTuple[]> {
    const tuples: CheckpointTuple[] = [];
    const open = await this.threads.find(thread);
    if (open === undefined || page.length === 0) return tuples;
    for await (const tuple of this.tuples(open, page)) tuples.push(tuple);
    return tuples;
  }

  /** Puts checkpoints of one thread in the order given, and tells their commits. */
  async putAll(
    thread: string,
    tuples: readonly { readonly place: CheckpointPlace; readonly tuple: CheckpointTuple }[],
  ): Promise<CheckpointOfThread[]> {
    const put: CheckpointOfThread[] = [];
    for (let from = 0; from < tuples.length; ) {
      const namespace = tuples[from]?.place.namespace as string;
      const other = tuples.findIndex(({ place }, i) => i > from && place.namespace !== namespace);
      const to = other === -1 ? tuples.length : other;
      const line = tuples.slice(from, to);
      const requests = await Promise.all(
        line.map(({ place, tuple: { checkpoint, metadata, parentConfig } }) => {
          const parent = { ...place, id: parentConfig?.configurable?.checkpoint_id };
          // Named as new, a channel has the value that the source says, whatever the parent had.
          const names = Object.keys({
            ...checkpoint.channel_values,
            ...checkpoint.channel_versions,
          });
          const versions = names.map((name) => [name, checkpoint.channel_versions[name] ?? 0]);
          return this.request(
            configOf(parent),
            checkpoint,
            metadata as CheckpointMetadata,
            Object.fromEntries(versions),
          );
        }),
      );
      await this.threads.use(thread, async (open) => {
        const ids = await open.checkpoints.putAll(
          namespace,
          requests.map((request) => request(open)),
        );
        for (const [i, at] of ids.entries())
          put.push({ id: line[i]?.place.id as string, namespace, at });
      });
      from = to;
    }
    return put;
  }
}
