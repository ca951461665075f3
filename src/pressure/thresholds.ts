import { AgstateError } from "../core/errors.js";
import type { MemorySource } from "./types.js";

/** From when on memory counts as short. */
export interface PressureThresholds {
  /**
   * Share of a limit that is in use, page cache taken out: 0.85. Memory that is merely allocated makes no task wait
   * before the kernel kills, so that nearness is a reason of its own.
   */
  readonly usage: number;
  /** Share from which on it is critical, which is told once more: 0.95. */
  readonly critical: number;
  /** Per cent of the last ten seconds in which some task waited for memory: 20; null takes no notice. */
  readonly stall10s: number | null;
  /** Per cent of the last second in which some task did: 60; null takes no notice. */
  readonly stall1s: number | null;
  /** Per cent of the last ten seconds in which some task waited for a processor; null, the default, takes no notice. */
  readonly cpuStall10s: number | null;
  /** Per cent of the last ten seconds' periods in which the processors' quota was used up; null, the default, takes no notice. */
  readonly throttled10s: number | null;
}

/**
 * The share of a limit that a threshold of memory means there.
 *
 * A machine's memory is used by all who are on it, and well used is no sign that it runs out: of it only a third of what is left
 * below a threshold counts, so that 0.85 is 0.95 of the machine.
 */
export function shareAt(threshold: number, source: MemorySource): number {
  return source === "machine" ? 1 - (1 - threshold) / MACHINE_FACTOR : threshold;
}

const MACHINE_FACTOR = 3;

export const DEFAULT_THRESHOLDS: PressureThresholds = {
  usage: 0.85,
  critical: 0.95,
  stall10s: 20,
  stall1s: 60,
  cpuStall10s: null,
  throttled10s: null,
};

const SHARES = ["usage", "critical"] as const;

/** The least share of a limit that can be a threshold: below it whatever a process does would be pressure. */
const USAGE_MIN = 0.1;

/**
 * Fills in the defaults of what is not given.
 *
 * @throws AgstateError `INVALID_ARGUMENT`
 */
export function resolveThresholds(given: Partial<PressureThresholds> = {}): PressureThresholds {
  const thresholds: Record<string, number | null> = { ...DEFAULT_THRESHOLDS };
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined) continue;
    if (!Object.hasOwn(DEFAULT_THRESHOLDS, name)) {
      const known = Object.keys(DEFAULT_THRESHOLDS).join(", ");
      throw invalid(name, `there is no threshold called ${name}; there are ${known}`);
    }
    const isShare = (SHARES as readonly string[]).includes(name);
    if (isShare && !(typeof value === "number" && value >= USAGE_MIN && value < 1)) {
      throw invalid(
        name,
        `threshold ${name} is ${String(value)}; it is a share of the limit, from ${USAGE_MIN} to below 1`,
      );
    }
    if (!isShare && value !== null && !(value > 0 && value <= 100)) {
      throw invalid(
        name,
        `threshold ${name} is ${String(value)}; it is in per cent, above 0 and at most 100, or null`,
      );
    }
    thresholds[name] = value;
  }
  const { usage, critical } = thresholds as unknown as PressureThresholds;
  if (given.critical === undefined && critical <= usage) thresholds.critical = (1 + usage) / 2;
  else if (critical <= usage) {
    throw invalid(
      "critical",
      `threshold critical is ${critical}, and usage ${usage}; critical is the greater one`,
    );
  }
  return thresholds as unknown as PressureThresholds;
}

function invalid(threshold: string, message: string): AgstateError {
  return new AgstateError("INVALID_ARGUMENT", message, { threshold });
}
