import type { PressureLevel, PressureReason, Seen } from "./reasons.js";
import { shareOf } from "./reasons.js";
import { Reserve } from "./reserve.js";
import type { Sampler } from "./sampler.js";
import type { Shared } from "./shared.js";
import { type PressureThresholds, shareAt } from "./thresholds.js";
import { Trigger } from "./trigger.js";
import type { MemoryLevel, PressureSample } from "./types.js";

/** What the watching thread tells. */
export type WatcherMessage =
  | {
      readonly kind: "risen";
      readonly level: "pressure" | "critical";
      readonly reasons: readonly PressureReason[];
      readonly sample: PressureSample;
      readonly releasedBytes: number;
      /** Milliseconds since 1970. */
      readonly time: number;
    }
  | {
      readonly kind: "eased" | "cleared";
      readonly level: PressureLevel;
      readonly sample: PressureSample;
    }
  | { readonly kind: "absent"; readonly what: string; readonly message: string };

export interface WatcherOptions {
  readonly thresholds: PressureThresholds;
  readonly reserveBytes: number;
}

/**
 * Looks at memory again and again, holds the reserve, and tells when memory becomes short and when it is not any more.
 *
 * It lives on a thread of its own, and neither waits for the main one nor asks it anything: the reserve is given back while
 * the main thread is still busy.
 */
export class Watcher {
  private readonly trigger: Trigger;
  private readonly reserve: Reserve;
  private readonly thresholds: PressureThresholds;
  private last: PressureSample | undefined;
  /** Some of the samples of the last ten seconds, oldest first. */
  private recent: PressureSample[] = [];

  constructor(
    { thresholds, reserveBytes }: WatcherOptions,
    private readonly sampler: Pick<Sampler, "sample" | "absences">,
    private readonly shared: Shared,
    private readonly tell: (message: WatcherMessage) => void,
  ) {
    this.thresholds = thresholds;
    this.trigger = new Trigger(thresholds);
    this.reserve = new Reserve(reserveBytes);
  }

  /** Looks once; answers whether memory is near being short, so that looking more often is worth it. */
  look(): boolean {
    const sample = this.withHeap(
      this.sampler.sample({ statFrom: this.statFrom, slowEveryMs: SLOW_EVERY_MS }),
    );
    for (const absence of this.sampler.absences()) this.tell({ kind: "absent", ...absence });
    const seen = this.see(sample);
    const transition = this.trigger.feed(seen);
    if (transition !== null) {
      this.shared.level = this.trigger.level;
      if (transition.kind === "risen") {
        const releasedBytes = this.reserve.release();
        const { level, reasons } = transition;
        this.tell({ kind: "risen", level, reasons, sample, releasedBytes, time: Date.now() });
      } else {
        this.tell({ kind: transition.kind, level: this.trigger.level, sample });
      }
    }
    const isCalm = this.isCalm(seen);
    // Taking it anew must not be what memory becomes short by.
    if (isCalm && this.trigger.level === "none") this.reserve.take();
    return !isCalm || this.trigger.level !== "none";
  }

  /** From which share of a limit on it matters how much of it is page cache. */
  private get statFrom(): number {
    return this.reserve.releasedBytes > 0 ? 0 : this.thresholds.usage - NEAR;
  }

  private isCalm(seen: Seen): boolean {
    return seen.sample.levels.every(
      (limit) =>
        shareOf(limit, seen.releasedBytes) < shareAt(this.thresholds.usage - NEAR, limit.source),
    );
  }

  private withHeap(sample: PressureSample): PressureSample {
    const heap = this.shared.heapUse;
    if (heap === null) return sample;
    const level: MemoryLevel = {
      source: "heap",
      path: "heap",
      usedBytes: heap.usedBytes,
      cacheBytes: 0,
      limitBytes: heap.limitBytes,
      highBytes: null,
      maxBytes: heap.limitBytes,
    };
    return { ...sample, levels: [...sample.levels, level] };
  }

  private see(sample: PressureSample): Seen {
    const { last, recent } = this;
    const { at } = sample;
    while (recent.length > 1 && at - (recent[0] as PressureSample).at > TEN_SECONDS_MS)
      recent.shift();
    const secondAgo = recent.findLast((each) => at - each.at >= ONE_SECOND_MS);
    const tenAgo = recent[0];
    if (recent.length === 0 || at - (recent.at(-1) as PressureSample).at >= KEPT_EVERY_MS) {
      recent.push(sample);
    }
    this.last = sample;
    return {
      sample,
      stall1s: secondAgo === undefined ? null : stallSince(secondAgo, sample),
      throttled10s: tenAgo === undefined ? null : throttledSince(tenAgo, sample),
      oomsSince: last === undefined ? 0 : oomsSince(last, sample),
      releasedBytes: this.reserve.releasedBytes,
    };
  }
}

/** How far below the threshold memory is near being short. */
const NEAR = 0.15;
/** How often what changes slowly is read. */
const SLOW_EVERY_MS = 2000;
const ONE_SECOND_MS = 1000;
const TEN_SECONDS_MS = 10_000;
const KEPT_EVERY_MS = 200;

/** Per cent of the time between two samples in which some task waited for memory. */
function stallSince(before: PressureSample, after: PressureSample): number | null {
  const from = before.memory;
  const to = after.memory;
  if (from === null || to === null || from.path !== to.path) return null;
  const waitedMs = (to.some.totalUs - from.some.totalUs) / 1000;
  const passedMs = after.at - before.at;
  return waitedMs < 0 || passedMs <= 0 ? null : Math.min(100, (waitedMs / passedMs) * 100);
}

function throttledSince(before: PressureSample, after: PressureSample): number | null {
  const from = before.throttling;
  const to = after.throttling;
  if (from === null || to === null || from.path !== to.path) return null;
  const periods = to.periods - from.periods;
  const throttled = to.throttledPeriods - from.throttledPeriods;
  return periods <= 0 || throttled < 0 ? null : (throttled / periods) * 100;
}

function oomsSince(before: PressureSample, after: PressureSample): number {
  const from = before.events;
  const to = after.events;
  // Another control group's counts say nothing of what happened since.
  if (from === null || to === null || from.path !== to.path) return 0;
  return Math.max(0, to.oom - from.oom) + Math.max(0, to.oomKill - from.oomKill);
}
