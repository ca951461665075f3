import { AgstateError } from "../../core/errors.js";
import type { Storage } from "../port.js";

/**
 * Refuses every call that comes after `close`.
 *
 * Calls under way when `close` is called finish first; closing again waits for
 * the same end and does nothing more.
 *
 * @throws AgstateError `STORE_CLOSED`, from every method but `close`
 */
export function closedGuard(storage: Storage): Storage {
  let underWay = 0;
  let idle: (() => void) | null = null;
  let closing: Promise<void> | null = null;

  async function guard<T>(method: string, call: () => Promise<T>): Promise<T> {
    if (closing !== null) {
      throw new AgstateError(
        "STORE_CLOSED",
        `${method} was called on a store that is closed; open it again with openStore`,
        { method },
      );
    }
    underWay++;
    try {
      return await call();
    } finally {
      underWay--;
      if (underWay === 0) idle?.();
    }
  }

  async function shut(): Promise<void> {
    if (underWay > 0) {
      await new Promise<void>((resolve) => {
        idle = resolve;
      });
    }
    await storage.close();
  }

  const near = storage.readGraphNear?.bind(storage);
  const below = storage.readBelow?.bind(storage);
  const mayBeReplica = storage.mayBeReplica?.bind(storage);
  return {
    write: (batch) => guard("write", () => storage.write(batch)),
    readObjects: (w, ids) => guard("readObjects", () => storage.readObjects(w, ids)),
    ...(below && { readBelow: (w, request) => guard("readBelow", () => below(w, request)) }),
    readCommits: (w, ids) => guard("readCommits", () => storage.readCommits(w, ids)),
    readRefs: (w, pattern) => guard("readRefs", () => storage.readRefs(w, pattern)),
    readHead: (w, ref) => guard("readHead", () => storage.readHead(w, ref)),
    readReflog: (w, ref, options) => guard("readReflog", () => storage.readReflog(w, ref, options)),
    readGraph: (w, ids, limit) => guard("readGraph", () => storage.readGraph(w, ids, limit)),
    ...(near && {
      readGraphNear: (w, ids, limit) => guard("readGraphNear", () => near(w, ids, limit)),
    }),
    findIds: (w, prefix, limit) => guard("findIds", () => storage.findIds(w, prefix, limit)),
    findExternal: (w, id) => guard("findExternal", () => storage.findExternal(w, id)),
    readPending: (w, prefixes) => guard("readPending", () => storage.readPending(w, prefixes)),
    readWorkflows: (options) => guard("readWorkflows", () => storage.readWorkflows(options)),
    readWorkflow: (id) => guard("readWorkflow", () => storage.readWorkflow(id)),
    scanObjects: (w, after, limit) =>
      guard("scanObjects", () => storage.scanObjects(w, after, limit)),
    scanCommits: (w, after, limit) =>
      guard("scanCommits", () => storage.scanCommits(w, after, limit)),
    scanPending: (w, after, limit) =>
      guard("scanPending", () => storage.scanPending(w, after, limit)),
    scanSeen: (w, type, before, after, limit) =>
      guard("scanSeen", () => storage.scanSeen(w, type, before, after, limit)),
    readAbandoned: (w, since) => guard("readAbandoned", () => storage.readAbandoned(w, since)),
    condemn: (w, ids, before, by) => guard("condemn", () => storage.condemn(w, ids, before, by)),
    sweep: (w, ids, by) => guard("sweep", () => storage.sweep(w, ids, by)),
    redeclare: (w, declared) => guard("redeclare", () => storage.redeclare(w, declared)),
    redact: (w, redaction) => guard("redact", () => storage.redact(w, redaction)),
    watch: (w, wake) => guard("watch", () => storage.watch(w, wake)),
    checkStructure: () => guard("checkStructure", () => storage.checkStructure()),
    usage: (w) => guard("usage", () => storage.usage(w)),
    compact: () => guard("compact", () => storage.compact()),
    describe: () => guard("describe", () => storage.describe()),
    ...(mayBeReplica && { mayBeReplica }),
    close() {
      closing ??= shut();
      return closing;
    },
  };
}
