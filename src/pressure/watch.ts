import { setTimeout as sleep } from "node:timers/promises";
import { getHeapStatistics } from "node:v8";
import { Worker } from "node:worker_threads";
import { AgstateError } from "../core/errors.js";
import { describeReason, describeReport } from "./describe.js";
import { asError, type CheckpointReport, Emergency } from "./emergency.js";
import { type EmergencyReason, type RunningWatch, registry, type StepsStopped } from "./guards.js";
import { type PressureNotice, warn } from "./notice.js";
import {
  type CheckedOptions,
  checkOptions,
  type PressureEvent,
  type WatchPressureOptions,
} from "./options.js";
import type { PressureLevel } from "./reasons.js";
import { Shared } from "./shared.js";
import { onSigterm } from "./sigterm.js";
import type { ThreadData } from "./thread.js";
import { RISE_MIN_INTERVAL_MS } from "./trigger.js";
import type { WatcherMessage } from "./watcher.js";

/** How long after its deadline a checkpoint still may tell how it came out. */
const LATE_MS = 250;
/** How often the main thread says how full its heap is. */
const HEAP_INTERVAL_MS = 500;

/**
 * Watches the memory of the process on a thread of its own, and brings the guarded branches into the store when it
 * becomes short: see `branch.guard`.
 *
 * There is one watch in a process at a time. It does not keep the process alive.
 *
 * @throws AgstateError `INVALID_ARGUMENT`, also while another watch is running
 */
export function watchPressure(options: WatchPressureOptions = {}): PressureWatch {
  const checked = checkOptions(options);
  if (registry.watch?.isImplicit === false) {
    throw new AgstateError(
      "INVALID_ARGUMENT",
      "memory is watched already, and once in a process is enough; close that watch before another is begun",
    );
  }
  void registry.watch?.close();
  return new PressureWatch(checked, false);
}

/** Starts a watch for a guard, unless one is running. */
export function watchForGuards(): void {
  if (registry.watch === undefined && registry.guards.size > 0) {
    new PressureWatch(checkOptions({}), true);
  }
}

/** A watch that runs. */
export class PressureWatch implements RunningWatch {
  private readonly shared = new Shared();
  private readonly emergency = new Emergency();
  private readonly thread: Worker | undefined;
  private readonly heapTimer: NodeJS.Timeout;
  private readonly stopListening: () => void;
  private retry: NodeJS.Timeout | undefined;
  private waiting: (() => void)[] = [];
  private told = false;
  private closed = false;

  /** @internal Use `watchPressure`. */
  constructor(
    private readonly options: CheckedOptions,
    readonly isImplicit: boolean,
  ) {
    this.sayHeap();
    this.heapTimer = setInterval(() => this.sayHeap(), HEAP_INTERVAL_MS).unref();
    this.thread = this.startThread();
    const { sigtermDeadlineMs } = options;
    this.stopListening =
      sigtermDeadlineMs === null ? () => undefined : onSigterm(() => this.end(sigtermDeadlineMs));
    registry.watch = this;
  }

  /** How short memory is at this moment, also while the event loop has not come to be told: a loop that computes for long can look here. */
  get level(): PressureLevel {
    return this.closed ? "none" : this.shared.level;
  }

  get stepsStopped(): StepsStopped | null {
    if (this.closed) return null;
    if (this.told) return { reason: "sigterm", how: "refuse" };
    const { steps } = this.options;
    if (steps === "go-on" || this.level === "none") return null;
    return { reason: "memory-pressure", how: steps };
  }

  /** Brings every guarded branch into the store now, whatever memory is like. */
  checkpoint(message = "checkpoint, as requested"): Promise<CheckpointReport> {
    return this.run("requested", message, this.options.deadlineMs);
  }

  /** @internal */
  changed(): Promise<void> {
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  /** Ends the watch, and gives its reserve back; calling it again does nothing. */
  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    if (registry.watch === this) registry.watch = undefined;
    clearInterval(this.heapTimer);
    clearTimeout(this.retry);
    this.stopListening();
    this.wake();
    this.shared.stop();
    await this.thread?.terminate();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  private startThread(): Worker | undefined {
    const { thresholds, reserveBytes, intervalMs } = this.options;
    const workerData: ThreadData = {
      thresholds,
      reserveBytes,
      intervalMs,
      shared: this.shared.buffer,
    };
    try {
      const thread = new Worker(new URL("./thread.js", import.meta.url), {
        workerData,
        name: "agstate-pressure",
        // Nothing that the process was started with is of use to it.
        execArgv: [],
        env: {},
        resourceLimits: { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 2 },
      } as object);
      thread.on("message", (message: WatcherMessage) => this.hear(message));
      thread.on("error", (error) => this.notWatching(error));
      thread.unref();
      return thread;
    } catch (error) {
      this.notWatching(error);
      return undefined;
    }
  }

  private notWatching(error: unknown): void {
    const why = asError(error).message;
    this.shared.level = "none";
    this.wake();
    this.notice("failed", `memory is not watched any more: ${why}`);
  }

  private sayHeap(): void {
    const { used_heap_size, heap_size_limit } = getHeapStatistics();
    this.shared.setHeap(used_heap_size, heap_size_limit);
  }

  private hear(message: WatcherMessage): void {
    if (this.closed) return;
    switch (message.kind) {
      case "absent":
        this.notice("absent", message.message);
        break;
      case "eased":
      case "cleared":
        if (message.kind === "cleared") {
          clearTimeout(this.retry);
          this.notice("cleared", "memory is not short any more");
        }
        this.wake();
        break;
      case "risen":
        void this.risen(message);
    }
  }

  private async risen(message: Extract<WatcherMessage, { kind: "risen" }>): Promise<void> {
    const { level, reasons, sample, releasedBytes, time } = message;
    const why = `${level === "critical" ? "memory is critically short" : "memory is short"}: ${reasons.map(describeReason).join(", ")}`;
    this.notice("pressure", why);
    const checkpoint = this.afterCallback(
      {
        reason: "memory-pressure",
        level,
        reasons,
        sample,
        releasedBytes,
        lateMs: Date.now() - time,
      },
      () => this.run("memory-pressure", `emergency checkpoint: ${why}`, this.options.deadlineMs),
    );
    this.after(await checkpoint, why);
  }

  /** Ends the process where that is asked for and everything is safe, or sees to it that what is not is tried again. */
  private after({ safe }: CheckpointReport, why: string): void {
    const { exitCode } = this.options;
    if (this.closed) return;
    if (!safe) this.tryAgain(why);
    else if (exitCode !== undefined) process.exit(exitCode);
  }

  /** What did not reach the store is tried again while memory stays short, no more often than a rise is told. */
  private tryAgain(why: string): void {
    clearTimeout(this.retry);
    this.retry = setTimeout(async () => {
      if (this.level === "none") return;
      const message = `emergency checkpoint, again: ${why}`;
      this.after(await this.run("memory-pressure", message, this.options.deadlineMs), why);
    }, RISE_MIN_INTERVAL_MS).unref();
  }

  /** Answers a signal to end: resolves when the process may. */
  private async end(deadlineMs: number): Promise<void> {
    this.told = true;
    this.wake();
    const message = "checkpoint: the process was told to end (SIGTERM)";
    this.notice("pressure", "the process was told to end (SIGTERM): no new steps are taken");
    const checkpoint = this.afterCallback(
      {
        reason: "sigterm",
        level: this.level,
        reasons: [],
        sample: null,
        releasedBytes: 0,
        lateMs: 0,
      },
      () => this.run("sigterm", message, deadlineMs),
    );
    // A pass that was under way already may take its own time first.
    const over = new AbortController();
    const late = sleep(deadlineMs + LATE_MS, true, { signal: over.signal }).catch(() => false);
    if (await Promise.race([checkpoint.then(() => false), late])) {
      this.notice("unsafe", `NOT everything is in the store (sigterm): ${deadlineMs} ms are over`);
    }
    over.abort();
  }

  /** Tells the caller first, as what it drops makes room, and then writes, whatever became of that. */
  private afterCallback(
    event: Omit<PressureEvent, "checkpoint">,
    run: () => Promise<CheckpointReport>,
  ): Promise<CheckpointReport> {
    let begin: () => void = () => undefined;
    const checkpoint = new Promise<void>((resolve) => {
      begin = resolve;
    }).then(run);
    const failed = (error: unknown) =>
      this.notice("failed", `onPressure failed: ${asError(error).message}`);
    try {
      const told = this.options.onPressure?.({ ...event, checkpoint });
      if (told instanceof Promise) told.catch(failed);
    } catch (error) {
      failed(error);
    }
    begin();
    return checkpoint;
  }

  private async run(
    reason: EmergencyReason,
    message: string,
    deadlineMs: number,
  ): Promise<CheckpointReport> {
    const report = await this.emergency.run({ reason, message, deadlineMs });
    this.notice(report.safe ? "safe" : "unsafe", describeReport(report));
    return report;
  }

  private wake(): void {
    const { waiting } = this;
    this.waiting = [];
    for (const resolve of waiting) resolve();
  }

  private notice(code: PressureNotice["code"], message: string): void {
    const notice = { code, message };
    try {
      if (this.options.onNotice === undefined) warn(notice);
      else this.options.onNotice(notice);
    } catch {
      // Whoever is told must not be what stops a checkpoint.
    }
  }
}
