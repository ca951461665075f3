import { type PressureThresholds, shareAt } from "./thresholds.js";
import type { MemoryLevel, PressureSample } from "./types.js";

/** How short memory is. */
export type PressureLevel = "none" | "pressure" | "critical";

/** Why memory counts as short: what was seen, and from when on it is a reason. */
export interface PressureReason {
  /**
   * `usage`: near a limit. `stall`: tasks wait for memory. `oom`: the kernel found none, or has killed. `cpu-stall` and `throttled`: tasks wait for
   * processors, or are held back at their quota.
   */
  readonly kind: "usage" | "stall" | "oom" | "cpu-stall" | "throttled";
  readonly level: "pressure" | "critical";
  /** A share for `usage`, a count for `oom`, per cent for all others. */
  readonly value: number;
  readonly threshold: number;
  /** What says so: a file or a control group. */
  readonly path: string;
  /** Of `usage`: what the share is of. */
  readonly limit?: MemoryLevel;
}

/** What a sample and those shortly before it say together. */
export interface Seen {
  readonly sample: PressureSample;
  /** Per cent of the time since about a second ago in which some task waited for memory; null where nobody knows yet. */
  readonly stall1s: number | null;
  /** Per cent of the last ten seconds' periods in which the quota was used up; null where nobody knows yet. */
  readonly throttled10s: number | null;
  /** What `oom` and `oomKill` have grown by since the sample before. */
  readonly oomsSince: number;
  /** Memory that was given back for the time of the pressure, and will be taken again. */
  readonly releasedBytes: number;
}

/** How far below a threshold is calm. */
const USAGE_CALM = 0.1;
const CRITICAL_CALM = 0.05;
const PERCENT_CALM = 0.5;

/** The thresholds that have to be passed downwards until memory does not count as short, or critically short, any more. */
export function calmThresholds(thresholds: PressureThresholds): PressureThresholds {
  const half = (value: number | null) => (value === null ? null : value * PERCENT_CALM);
  return {
    usage: Math.max(thresholds.usage - USAGE_CALM, thresholds.usage / 2),
    critical: Math.max(thresholds.critical - CRITICAL_CALM, thresholds.usage),
    stall10s: half(thresholds.stall10s),
    stall1s: half(thresholds.stall1s),
    cpuStall10s: half(thresholds.cpuStall10s),
    throttled10s: half(thresholds.throttled10s),
  };
}

/**
 * Every reason for which memory is short, the most serious and nearest to its limit first.
 *
 * @param releasedBytes what to count as in use beside what is
 */
export function reasonsOf(
  seen: Seen,
  thresholds: PressureThresholds,
  releasedBytes = 0,
): PressureReason[] {
  const { sample } = seen;
  const reasons: PressureReason[] = [];
  for (const limit of sample.levels) {
    const { path, source } = limit;
    const value = shareOf(limit, releasedBytes);
    const critical = shareAt(thresholds.critical, source);
    const usage = shareAt(thresholds.usage, source);
    if (value >= critical) {
      reasons.push({ kind: "usage", level: "critical", value, threshold: critical, path, limit });
    } else if (value >= usage) {
      reasons.push({ kind: "usage", level: "pressure", value, threshold: usage, path, limit });
    }
  }
  reasons.sort((a, b) => (a.level === b.level ? b.value - a.value : a.level < b.level ? -1 : 1));
  if (seen.oomsSince > 0) {
    const path = sample.events?.path ?? "memory.events";
    reasons.unshift({ kind: "oom", level: "critical", value: seen.oomsSince, threshold: 1, path });
  }
  const waits = (
    kind: PressureReason["kind"],
    value: number | null | undefined,
    threshold: number | null,
    path: string | undefined,
  ) => {
    if (threshold === null || value === null || value === undefined || value < threshold) return;
    reasons.push({ kind, level: "pressure", value, threshold, path: path ?? "" });
  };
  const { memory, cpu, throttling } = sample;
  waits("stall", memory?.some.avg10, thresholds.stall10s, memory?.path);
  if (!reasons.some(({ kind }) => kind === "stall")) {
    waits("stall", seen.stall1s, thresholds.stall1s, memory?.path);
  }
  waits("cpu-stall", cpu?.some.avg10, thresholds.cpuStall10s, cpu?.path);
  waits("throttled", seen.throttled10s, thresholds.throttled10s, throttling?.path);
  return reasons;
}

/** The share of a limit that is in use. */
export function shareOf(limit: MemoryLevel, releasedBytes = 0): number {
  // The reserve stands in buffers, which V8's heap does not count.
  const released = limit.source === "heap" ? 0 : releasedBytes;
  return (limit.usedBytes + released) / limit.limitBytes;
}

/** The level that reasons make together. */
export function levelOf(reasons: readonly PressureReason[]): PressureLevel {
  if (reasons.some(({ level }) => level === "critical")) return "critical";
  return reasons.length > 0 ? "pressure" : "none";
}
