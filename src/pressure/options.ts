import { AgstateError } from "../core/errors.js";
import type { CheckpointReport } from "./emergency.js";
import type { PressureNotice } from "./notice.js";
import type { PressureLevel, PressureReason } from "./reasons.js";
import { checkReserve } from "./reserve.js";
import { type PressureThresholds, resolveThresholds } from "./thresholds.js";
import type { PressureSample } from "./types.js";

/** What happens because memory is short, or because the process was told to end. */
export interface PressureEvent {
  readonly reason: "memory-pressure" | "sigterm";
  readonly level: PressureLevel;
  /** Why memory counts as short; the most serious first. */
  readonly reasons: readonly PressureReason[];
  /** What was seen; null for a signal. */
  readonly sample: PressureSample | null;
  /** What was given back of the reserve before anything was done. */
  readonly releasedBytes: number;
  /** How long the process's own code kept this from being told, in milliseconds. */
  readonly lateMs: number;
  /** Resolves when all that could be brought into the store was, or its time is over; never rejects. */
  readonly checkpoint: Promise<CheckpointReport>;
}

export interface WatchPressureOptions {
  readonly thresholds?: Partial<PressureThresholds>;
  /** Told at each rise, before anything is written: what can be dropped is best dropped here. What it throws is a notice. */
  readonly onPressure?: (event: PressureEvent) => void | Promise<void>;
  /** Told what a person should know; default a warning of the process. */
  readonly onNotice?: (notice: PressureNotice) => void;
  /** How much memory is held, and given back when memory is short, so that writing has some; default 16 MiB, at most 1 GiB. */
  readonly reserveBytes?: number;
  /**
   * What becomes of new steps while memory is short: they are refused with `STEPS_STOPPED`, wait until it is not any more, or go on;
   * default `refuse`. After a signal they are refused whatever this says. Steps under way go on, and are left in flight where the process ends first.
   */
  readonly steps?: "refuse" | "wait" | "go-on";
  /** After so many milliseconds what has not reached the store counts as failed; default 30,000. */
  readonly deadlineMs?: number;
  /** Ends the process with this code when memory is short and everything is in the store; default: it goes on. */
  readonly exitCode?: number;
  /**
   * Does the same on SIGTERM, and then lets the process end by it, unless others listen for it too. The deadline is by default
   * 20,000 ms, as Kubernetes kills after 30 s unless told otherwise. `false` leaves the signal alone.
   */
  readonly sigterm?: { readonly deadlineMs?: number } | false;
  /** How often memory is looked at, in milliseconds; default 200, at least 10. Near the threshold it is four times as often. */
  readonly intervalMs?: number;
}

const RESERVE_DEFAULT_BYTES = 16 * 1024 * 1024;
const DEADLINE_MS = 30_000;
const SIGTERM_DEADLINE_MS = 20_000;
const INTERVAL_MS = 200;
const INTERVAL_MIN_MS = 10;
const MS_MAX = 3_600_000;
const EXIT_CODE_MAX = 255;

/** Options with all that was left out. */
export interface CheckedOptions extends Omit<WatchPressureOptions, "thresholds" | "sigterm"> {
  readonly thresholds: PressureThresholds;
  readonly reserveBytes: number;
  readonly steps: "refuse" | "wait" | "go-on";
  readonly deadlineMs: number;
  readonly intervalMs: number;
  /** Null where the signal is left alone. */
  readonly sigtermDeadlineMs: number | null;
}

/** @throws AgstateError `INVALID_ARGUMENT` */
export function checkOptions(options: WatchPressureOptions): CheckedOptions {
  const { steps = "refuse", exitCode, sigterm, ...rest } = options;
  if (!["refuse", "wait", "go-on"].includes(steps)) {
    throw new AgstateError(
      "INVALID_ARGUMENT",
      `steps is ${JSON.stringify(steps)}; it is refuse, wait or go-on`,
      { steps },
    );
  }
  if (exitCode !== undefined) whole("exitCode", exitCode, 0, EXIT_CODE_MAX);
  const { reserveBytes = RESERVE_DEFAULT_BYTES, deadlineMs = DEADLINE_MS } = options;
  const sigtermMs = sigterm === false ? undefined : sigterm?.deadlineMs;
  return {
    ...rest,
    ...(exitCode !== undefined && { exitCode }),
    steps,
    thresholds: resolveThresholds(options.thresholds),
    reserveBytes: checkReserve(reserveBytes),
    deadlineMs: whole("deadlineMs", deadlineMs, 1, MS_MAX),
    intervalMs: whole("intervalMs", options.intervalMs ?? INTERVAL_MS, INTERVAL_MIN_MS, MS_MAX),
    sigtermDeadlineMs:
      sigterm === false
        ? null
        : whole("sigterm.deadlineMs", sigtermMs ?? SIGTERM_DEADLINE_MS, 1, MS_MAX),
  };
}

function whole(what: string, value: number, min: number, max: number): number {
  if (Number.isSafeInteger(value) && value >= min && value <= max) return value;
  throw new AgstateError(
    "INVALID_ARGUMENT",
    `${what} is ${value}; it is a whole number from ${min} to ${max}`,
    { [what]: value, min, max },
  );
}
