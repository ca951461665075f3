import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";
import { LRUCache } from "lru-cache";
import { AgstateError, isAgstateError } from "../core/errors.js";
import { quoteForMessage } from "../core/names.js";
import type { WorkflowDeclaration } from "../store/types.js";
import { openStore, type Store } from "../store.js";
import { workflowOf } from "./names.js";
import { type ConcurrentPuts, Thread } from "./thread.js";
import { PendingWrites } from "./writes.js";

/** How many threads a saver keeps at hand, each with the latest states of some namespaces. */
const THREADS_AT_HAND = 128;

export interface OpenThread {
  readonly id: string;
  readonly checkpoints: Thread;
  readonly writes: PendingWrites;
}

export interface OpenThreadsOptions {
  readonly concurrentPuts: ConcurrentPuts;
  readonly declarationOf: (threadId: string) => WorkflowDeclaration;
  readonly serde: () => SerializerProtocol;
}

/** The threads of a store that a saver has at hand, and the store. */
export class OpenThreads {
  private readonly threads = new LRUCache<string, OpenThread>({ max: THREADS_AT_HAND });
  /** Threads with puts or writes under way, which must not be forgotten meanwhile. */
  private readonly inUse = new Map<string, { readonly thread: OpenThread; count: number }>();
  private readonly opening = new Map<string, Promise<OpenThread | undefined>>();
  private readonly creating = new Map<string, Promise<OpenThread>>();
  private opened: Promise<Store> | undefined;

  constructor(
    private readonly store: Store | { readonly url: string },
    private readonly options: OpenThreadsOptions,
  ) {}

  /** Opens the store, if it is the saver's own. */
  open(): Promise<Store> {
    const { store } = this;
    if (!("url" in store)) return Promise.resolve(store);
    this.opened ??= openStore(store.url).catch((error: unknown) => {
      this.opened = undefined;
      throw error;
    });
    return this.opened;
  }

  /** Closes the store, if it is the saver's own. */
  async close(): Promise<void> {
    const { opened } = this;
    if (opened !== undefined) await (await opened).close();
  }

  /** All threads of the store, found by walking its workflows. */
  async *all(): AsyncGenerator<OpenThread, void, undefined> {
    const store = await this.open();
    for await (const { id: workflow } of store.workflows()) {
      const name = await this.threadIdOf(workflow);
      const thread = name === undefined ? undefined : await this.find(name);
      if (thread !== undefined) yield thread;
    }
  }

  /** The thread that a workflow is, as its own checkpoints name it; undefined of one that has none. */
  private async threadIdOf(workflow: string): Promise<string | undefined> {
    const thread = new Thread((await (await this.open()).workflow(workflow)).internals);
    for await (const { at } of thread.checkpoints(undefined)) {
      const { thread: id } = await thread.frame(at);
      return workflowOf(id) === workflow ? id : undefined;
    }
    return undefined;
  }

  /** Opens a thread, once for all who ask at the same time, so that they go on in the order in which they asked. */
  find(id: string): Promise<OpenThread | undefined> {
    const known = this.inUse.get(id)?.thread ?? this.threads.get(id);
    if (known !== undefined) return Promise.resolve(known);
    const opening =
      this.opening.get(id) ?? this.openThread(id).finally(() => this.opening.delete(id));
    this.opening.set(id, opening);
    return opening;
  }

  private async openThread(id: string): Promise<OpenThread | undefined> {
    const store = await this.open();
    try {
      const { internals } = await store.workflow(workflowOf(id));
      if (internals.placed !== null) throw keptAtHome(id);
      const thread = {
        id,
        checkpoints: new Thread(internals, this.options.concurrentPuts),
        writes: new PendingWrites(internals, this.options.serde()),
      };
      this.threads.set(id, thread);
      return thread;
    } catch (error) {
      if (isAgstateError(error, "WORKFLOW_NOT_FOUND")) return undefined;
      throw error;
    }
  }

  /** Does something with a thread, which is made when it is not there. */
  async use<T>(id: string, act: (thread: OpenThread) => Promise<T>): Promise<T> {
    const thread = (await this.find(id)) ?? (await this.createThread(id));
    // What is under way is known to the thread alone: it must be the same for all, however many are opened.
    const use = this.inUse.get(id) ?? { thread, count: 0 };
    this.inUse.set(id, use);
    use.count++;
    try {
      return await act(use.thread);
    } finally {
      use.count--;
      if (use.count === 0) this.inUse.delete(id);
    }
  }

  private createThread(id: string): Promise<OpenThread> {
    const create = async () => {
      const store = await this.open();
      try {
        const declared = this.options.declarationOf(id);
        const { classification, storageRegion, retentionPolicy, isolation, subjects } = declared;
        if ((declared.placement ?? []).length > 0) throw keptAtHome(id);
        await store.createWorkflow(workflowOf(id), {
          author: "langgraph",
          ...(classification !== undefined && { classification }),
          ...(storageRegion !== undefined && { storageRegion }),
          ...(retentionPolicy !== undefined && { retentionPolicy }),
          ...(isolation !== undefined && { isolation }),
          ...(subjects !== undefined && { subjects }),
        });
      } catch (error) {
        if (!isAgstateError(error, "WORKFLOW_EXISTS")) throw error;
      }
      return (await this.find(id)) as OpenThread;
    };
    const creating = this.creating.get(id) ?? create().finally(() => this.creating.delete(id));
    this.creating.set(id, creating);
    return creating;
  }
}

/** LangGraph writes what channels get before anybody knows at which path of a state it will stand. */
function keptAtHome(id: string): AgstateError {
  return new AgstateError(
    "REGION_REFUSED",
    `thread ${quoteForMessage(id)} has parts in other regions, where a checkpointer cannot keep them; keep all of a thread in one region, and declare no placement`,
    { thread: id },
  );
}
