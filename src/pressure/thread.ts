/**
 * The thread that watches memory: see `Watcher`. It sleeps by the memory that it shares with the main thread, so that it
 * needs no event loop, and can be ended at any moment.
 */
import { parentPort, workerData } from "node:worker_threads";
import { Sampler } from "./sampler.js";
import { Shared } from "./shared.js";
import { Watcher, type WatcherMessage, type WatcherOptions } from "./watcher.js";

/** What the main thread gives this one. */
export interface ThreadData extends WatcherOptions {
  readonly shared: SharedArrayBuffer;
  readonly intervalMs: number;
}

/** How much more often it looks while memory is near being short. */
const NEAR_FACTOR = 4;

const { shared: buffer, intervalMs, ...options } = workerData as ThreadData;
const shared = new Shared(buffer);
const sampler = new Sampler();
const tell = (message: WatcherMessage) => parentPort?.postMessage(message);
const watcher = new Watcher(options, sampler, shared, tell);
while (!shared.stopped) {
  const near = watcher.look();
  shared.sleep(near ? intervalMs / NEAR_FACTOR : intervalMs);
}
sampler.close();
