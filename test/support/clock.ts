import { onTestFinished, vi } from "vitest";

const DAY_MS = 86_400_000;
const BEGIN = Date.parse("2024-01-01T00:00:00Z");

/** A clock that stands still until it is set to a day, counted from the first of January 2024. */
export function dayClock(): { set(day: number): void } {
  vi.useFakeTimers({ now: BEGIN, toFake: ["Date"] });
  onTestFinished(() => void vi.useRealTimers());
  return { set: (day) => void vi.setSystemTime(BEGIN + day * DAY_MS) };
}
