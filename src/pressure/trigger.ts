import {
  calmThresholds,
  levelOf,
  type PressureLevel,
  type PressureReason,
  reasonsOf,
  type Seen,
} from "./reasons.js";
import type { PressureThresholds } from "./thresholds.js";

export const PRESSURE_LEVELS: readonly PressureLevel[] = ["none", "pressure", "critical"];

/** How long it must be calm until memory does not count as short any more. */
export const CALM_MS = 10_000;
/** How long after one rise the next of the same level is told at the earliest. */
export const RISE_MIN_INTERVAL_MS = 30_000;

/** What a change of the level is. */
export type Transition =
  | {
      readonly kind: "risen";
      readonly level: "pressure" | "critical";
      readonly reasons: readonly PressureReason[];
    }
  | { readonly kind: "eased"; readonly level: "pressure" }
  | { readonly kind: "cleared" };

export interface TriggerTimes {
  readonly calmMs: number;
  readonly minIntervalMs: number;
}

/**
 * Decides when memory is short, from sample to sample.
 *
 * A rise is told once, when a threshold is passed. The level falls only after everything has been well below the threshold for
 * a while, without a break, so that usage that is held at a limit, or goes to and fro around a threshold, tells nothing more; and
 * two rises of one level are never nearer to each other than the least interval, however calm it was between them. A rise to
 * critical is told even if one to pressure was told a moment ago.
 */
export class Trigger {
  private current = 0;
  /** Since when all was below what each level needs, by level; undefined while it is not. */
  private readonly calmSince: (number | undefined)[] = [undefined, undefined, undefined];
  private readonly lastRise = [0, 0, 0].map(() => Number.NEGATIVE_INFINITY);
  private readonly calm: PressureThresholds;

  constructor(
    private readonly thresholds: PressureThresholds,
    private readonly times: TriggerTimes = {
      calmMs: CALM_MS,
      minIntervalMs: RISE_MIN_INTERVAL_MS,
    },
  ) {
    this.calm = calmThresholds(thresholds);
  }

  get level(): PressureLevel {
    return PRESSURE_LEVELS[this.current] as PressureLevel;
  }

  /** Takes the next sample; null where nothing changes. */
  feed(seen: Seen): Transition | null {
    const now = seen.sample.at;
    const reasons = reasonsOf(seen, this.thresholds);
    const wanted = PRESSURE_LEVELS.indexOf(levelOf(reasons));
    if (wanted > this.current) return this.rise(wanted, reasons, now);
    return this.current === 0 ? null : this.fall(seen, now);
  }

  private rise(level: number, reasons: PressureReason[], now: number): Transition | null {
    // One that comes too soon is told when the interval is over, if it still is one then.
    if (now - (this.lastRise[level] as number) < this.times.minIntervalMs) return null;
    this.current = level;
    this.calmSince.fill(undefined);
    for (let i = 1; i <= level; i++) this.lastRise[i] = now;
    return { kind: "risen", level: PRESSURE_LEVELS[level] as "pressure" | "critical", reasons };
  }

  private fall(seen: Seen, now: number): Transition | null {
    const still = PRESSURE_LEVELS.indexOf(levelOf(reasonsOf(seen, this.calm, seen.releasedBytes)));
    let least = this.current;
    for (let level = 1; level <= this.current; level++) {
      if (still >= level) this.calmSince[level] = undefined;
      else {
        this.calmSince[level] ??= now;
        const calm = now - (this.calmSince[level] as number) >= this.times.calmMs;
        if (calm && least === this.current) least = level - 1;
      }
    }
    if (least === this.current) return null;
    this.current = least;
    return least === 0 ? { kind: "cleared" } : { kind: "eased", level: "pressure" };
  }
}
