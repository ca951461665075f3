import type { PendingRow, Storage, StoredObject } from "../port.js";

/** All but what asks nobody. */
type Method = Exclude<keyof Storage, "mayBeReplica">;

/** What went over the storage port since the start or the last `reset`. */
export interface StorageCounts {
  /** Calls by method; each is one round trip. `close` is not counted. */
  readonly calls: Readonly<Record<Method, number>>;
  readonly roundTrips: number;
  /** Objects given to `write`, inlined ones and commits included. */
  readonly objectsWritten: number;
  readonly pendingWritten: number;
  readonly bytesWritten: number;
  /** Objects and commits that reads and scans answered, inlined ones included. */
  readonly objectsRead: number;
  readonly pendingRead: number;
  readonly bytesRead: number;
}

export interface CountingStorage {
  readonly storage: Storage;
  /** A snapshot of the counts. */
  counts(): StorageCounts;
  reset(): void;
}

const METHODS: readonly Method[] = [
  "write",
  "readObjects",
  "readBelow",
  "readCommits",
  "readRefs",
  "readHead",
  "readReflog",
  "readGraph",
  "readGraphNear",
  "findIds",
  "findExternal",
  "readPending",
  "readWorkflows",
  "readWorkflow",
  "scanObjects",
  "scanCommits",
  "scanPending",
  "scanSeen",
  "readAbandoned",
  "condemn",
  "sweep",
  "redact",
  "redeclare",
  "watch",
  "checkStructure",
  "usage",
  "compact",
  "describe",
  "close",
];

function zeroCalls(): Record<Method, number> {
  return Object.fromEntries(METHODS.map((m) => [m, 0])) as Record<Method, number>;
}

/** Counts round trips, objects and bytes, so that tests can hold the cost of an operation. */
export function counting(storage: Storage): CountingStorage {
  let calls = zeroCalls();
  const none = {
    objectsWritten: 0,
    pendingWritten: 0,
    bytesWritten: 0,
    objectsRead: 0,
    pendingRead: 0,
    bytesRead: 0,
  };
  const moved = { ...none };

  type Sized = StoredObject | { body: Uint8Array; inline: readonly StoredObject[] };

  function sizeOf(item: Sized): number {
    return "tombstone" in item ? item.tombstone.length : item.body.length;
  }

  function tally(way: "Written" | "Read", items: readonly (Sized | undefined)[]): void {
    for (const item of items) {
      if (item === undefined) continue;
      moved[`objects${way}`]++;
      moved[`bytes${way}`] += sizeOf(item);
      if ("inline" in item) {
        for (const inner of item.inline) {
          moved[`objects${way}`]++;
          moved[`bytes${way}`] += sizeOf(inner);
        }
      }
    }
  }

  function tallyPending(way: "Written" | "Read", rows: readonly PendingRow[]): void {
    moved[`pending${way}`] += rows.length;
    for (const { body } of rows) moved[`bytes${way}`] += body.length;
  }

  function call<T>(method: Method, run: () => Promise<T>): Promise<T> {
    calls[method]++;
    return run();
  }

  const near = storage.readGraphNear?.bind(storage);
  const below = storage.readBelow?.bind(storage);
  const mayBeReplica = storage.mayBeReplica?.bind(storage);
  const counted: Storage = {
    write(batch) {
      tally("Written", batch.objects);
      for (const move of batch.moves) tally("Written", move.commits);
      tallyPending("Written", batch.pending ?? []);
      return call("write", () => storage.write(batch));
    },
    async readObjects(w, ids) {
      const objects = await call("readObjects", () => storage.readObjects(w, ids));
      tally("Read", objects);
      return objects;
    },
    ...(below && {
      async readBelow(w, request) {
        const found = await call("readBelow", () => below(w, request));
        tally("Read", found.commits);
        tally("Read", found.objects);
        return found;
      },
    }),
    async readCommits(w, ids) {
      const commits = await call("readCommits", () => storage.readCommits(w, ids));
      tally("Read", commits);
      return commits;
    },
    readRefs: (w, pattern) => call("readRefs", () => storage.readRefs(w, pattern)),
    async readHead(w, ref) {
      const head = await call("readHead", () => storage.readHead(w, ref));
      tally("Read", [head?.commit]);
      return head;
    },
    readReflog: (w, ref, options) => call("readReflog", () => storage.readReflog(w, ref, options)),
    readGraph: (w, ids, limit) => call("readGraph", () => storage.readGraph(w, ids, limit)),
    ...(near && {
      readGraphNear: (w, ids, limit) => call("readGraphNear", () => near(w, ids, limit)),
    }),
    findIds: (w, prefix, limit) => call("findIds", () => storage.findIds(w, prefix, limit)),
    findExternal: (w, id) => call("findExternal", () => storage.findExternal(w, id)),
    async readPending(w, prefixes) {
      const rows = await call("readPending", () => storage.readPending(w, prefixes));
      tallyPending("Read", rows);
      return rows;
    },
    readWorkflows: (options) => call("readWorkflows", () => storage.readWorkflows(options)),
    readWorkflow: (id) => call("readWorkflow", () => storage.readWorkflow(id)),
    async scanObjects(w, after, limit) {
      const page = await call("scanObjects", () => storage.scanObjects(w, after, limit));
      tally("Read", page.rows);
      return page;
    },
    async scanCommits(w, after, limit) {
      const page = await call("scanCommits", () => storage.scanCommits(w, after, limit));
      tally("Read", page.rows);
      return page;
    },
    async scanPending(w, after, limit) {
      const page = await call("scanPending", () => storage.scanPending(w, after, limit));
      tallyPending("Read", page.rows);
      return page;
    },
    scanSeen: (w, type, before, after, limit) =>
      call("scanSeen", () => storage.scanSeen(w, type, before, after, limit)),
    readAbandoned: (w, since) => call("readAbandoned", () => storage.readAbandoned(w, since)),
    condemn: (w, ids, before, by) => call("condemn", () => storage.condemn(w, ids, before, by)),
    sweep: (w, ids, by) => call("sweep", () => storage.sweep(w, ids, by)),
    redeclare: (w, declared) => call("redeclare", () => storage.redeclare(w, declared)),
    redact: (w, redaction) => call("redact", () => storage.redact(w, redaction)),
    watch: (w, wake) => call("watch", () => storage.watch(w, wake)),
    checkStructure: () => call("checkStructure", () => storage.checkStructure()),
    usage: (w) => call("usage", () => storage.usage(w)),
    compact: () => call("compact", () => storage.compact()),
    describe: () => call("describe", () => storage.describe()),
    ...(mayBeReplica && { mayBeReplica }),
    close: () => storage.close(),
  };

  return {
    storage: counted,
    counts: () => ({
      calls: { ...calls },
      roundTrips: Object.values(calls).reduce((a, b) => a + b, 0),
      ...moved,
    }),
    reset() {
      calls = zeroCalls();
      Object.assign(moved, none);
    },
  };
}
