import type { Storage } from "../port.js";

/** A storage that hands every call on unchanged: what a decorator spreads and then overrides. */
export function forward(storage: Storage): Storage {
  const near = storage.readGraphNear?.bind(storage);
  const below = storage.readBelow?.bind(storage);
  const mayBeReplica = storage.mayBeReplica?.bind(storage);
  return {
    write: (batch) => storage.write(batch),
    readObjects: (w, ids) => storage.readObjects(w, ids),
    ...(below && { readBelow: below }),
    readCommits: (w, ids) => storage.readCommits(w, ids),
    readRefs: (w, pattern) => storage.readRefs(w, pattern),
    readHead: (w, ref) => storage.readHead(w, ref),
    readReflog: (w, ref, options) => storage.readReflog(w, ref, options),
    readGraph: (w, ids, limit) => storage.readGraph(w, ids, limit),
    ...(near && { readGraphNear: near }),
    findIds: (w, prefix, limit) => storage.findIds(w, prefix, limit),
    findExternal: (w, id) => storage.findExternal(w, id),
    readPending: (w, prefixes) => storage.readPending(w, prefixes),
    readWorkflows: (options) => storage.readWorkflows(options),
    readWorkflow: (id) => storage.readWorkflow(id),
    scanObjects: (w, after, limit) => storage.scanObjects(w, after, limit),
    scanCommits: (w, after, limit) => storage.scanCommits(w, after, limit),
    scanPending: (w, after, limit) => storage.scanPending(w, after, limit),
    scanSeen: (w, type, before, after, limit) => storage.scanSeen(w, type, before, after, limit),
    readAbandoned: (w, since) => storage.readAbandoned(w, since),
    condemn: (w, ids, before, by) => storage.condemn(w, ids, before, by),
    sweep: (w, ids, by) => storage.sweep(w, ids, by),
    redact: (w, redaction) => storage.redact(w, redaction),
    redeclare: (w, declared) => storage.redeclare(w, declared),
    watch: (w, wake) => storage.watch(w, wake),
    checkStructure: () => storage.checkStructure(),
    usage: (w) => storage.usage(w),
    compact: () => storage.compact(),
    describe: () => storage.describe(),
    ...(mayBeReplica && { mayBeReplica }),
    close: () => storage.close(),
  };
}
