import { afterAll, beforeEach } from "vitest";
import { type CheckpointReport, Emergency } from "../../src/pressure/emergency.js";
import { type EmergencyReason, registry, type StepsStopped } from "../../src/pressure/guards.js";
import type { PressureLevel } from "../../src/pressure/reasons.js";

/**
 * A watch whose findings a test decides, in the place of the thread that looks at the machine's memory. All
 * that follows from the findings is the real thing.
 */
export class GivenPressure {
  level: PressureLevel = "none";
  stepsStopped: StepsStopped | null = null;
  readonly isImplicit = false;
  private readonly emergency = new Emergency();
  private waiting: (() => void)[] = [];

  /** Lets memory become short, or not be any more. */
  set(level: PressureLevel, how: StepsStopped["how"] | "go-on" = "refuse"): void {
    this.level = level;
    const stops = level !== "none" && how !== "go-on";
    this.stepsStopped = stops ? { reason: "memory-pressure", how } : null;
    this.wake();
  }

  /** What the process being told to end does to steps. */
  tellToEnd(): void {
    this.stepsStopped = { reason: "sigterm", how: "refuse" };
    this.wake();
  }

  changed(): Promise<void> {
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  async close(): Promise<void> {}

  checkpoint(
    message = "memory is short",
    reason: EmergencyReason = "memory-pressure",
    deadlineMs = 60_000,
  ): Promise<CheckpointReport> {
    return this.emergency.run({ reason, message, deadlineMs });
  }

  private wake(): void {
    const { waiting } = this;
    this.waiting = [];
    for (const resolve of waiting) resolve();
  }
}

/** Gives each test of a file a watch of its own. */
export function givenPressure(): { readonly watch: GivenPressure } {
  const given = { watch: new GivenPressure() };
  beforeEach(() => {
    given.watch = new GivenPressure();
    registry.watch = given.watch;
    registry.guards.clear();
    registry.landers.clear();
  });
  // Other files may run in this process.
  afterAll(() => {
    registry.watch = undefined;
    registry.guards.clear();
  });
  return given;
}
