import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { calmThresholds, reasonsOf, type Seen } from "../../src/pressure/reasons.js";
import { DEFAULT_THRESHOLDS, resolveThresholds } from "../../src/pressure/thresholds.js";
import { CALM_MS, RISE_MIN_INTERVAL_MS, Trigger } from "../../src/pressure/trigger.js";
import type { MemoryLevel, PressureSample, Stalls } from "../../src/pressure/types.js";
import { usually } from "../support/runs.js";
import { agstateError } from "../support/stores.js";

const MIB = 1024 * 1024;
const LIMIT = 512 * MIB;

function level(share: number, rest: Partial<MemoryLevel> = {}): MemoryLevel {
  return {
    source: "cgroup-v2",
    path: "/sys/fs/cgroup",
    usedBytes: share * LIMIT,
    cacheBytes: 0,
    limitBytes: LIMIT,
    highBytes: null,
    maxBytes: LIMIT,
    ...rest,
  };
}

function stalls(avg10: number): Stalls {
  const some = { avg10, avg60: 0, avg300: 0, totalUs: 0 };
  return { path: "/sys/fs/cgroup/memory.pressure", some, full: null };
}

function seen(at: number, share: number, rest: Partial<Seen> & { avg10?: number } = {}): Seen {
  const { avg10, ...more } = rest;
  const sample: PressureSample = {
    at,
    levels: [level(share)],
    memory: avg10 === undefined ? null : stalls(avg10),
    cpu: null,
    events: null,
    throttling: null,
  };
  return { sample, stall1s: null, throttled10s: null, oomsSince: 0, releasedBytes: 0, ...more };
}

/** What a trigger tells of shares of the limit, one every so many milliseconds. */
function told(shares: readonly number[], everyMs: number): string[] {
  const trigger = new Trigger(DEFAULT_THRESHOLDS);
  return shares.flatMap((share, i) => {
    const transition = trigger.feed(seen(i * everyMs, share));
    if (transition === null) return [];
    return [
      `${i * everyMs}: ${transition.kind}${"level" in transition ? ` ${transition.level}` : ""}`,
    ];
  });
}

describe("when memory is short", () => {
  it("is told once while usage is held at the limit for a minute", () => {
    expect(told(new Array(600).fill(0.9), 100)).toEqual(["0: risen pressure"]);
    expect(told(new Array(600).fill(0.99), 100)).toEqual(["0: risen critical"]);
  });

  it("is told once where usage goes to and fro around a threshold", () => {
    const around = Array.from({ length: 6000 }, (_, i) => (i % 2 === 0 ? 0.84 : 0.86));
    expect(told(around, 100)).toEqual(["100: risen pressure"]);
    const critical = Array.from({ length: 6000 }, (_, i) => (i % 2 === 0 ? 0.94 : 0.96));
    expect(told(critical, 100)).toEqual(["0: risen pressure", "100: risen critical"]);
  });

  it("is over after it was calm for a while, and told anew no sooner than the least interval after", () => {
    const saw = (highMs: number, lowMs: number) =>
      Array.from({ length: 90 }, (_, i) => ((i * 1000) % (highMs + lowMs) < highMs ? 0.9 : 0.5));
    expect(told(saw(1000, 14_000), 1000)).toEqual([
      "0: risen pressure",
      "11000: cleared",
      "30000: risen pressure",
      "41000: cleared",
      "60000: risen pressure",
      "71000: cleared",
    ]);
    expect(told(saw(1000, 4000), 1000)).toEqual(["0: risen pressure"]);
  });

  it("becomes critical at once, eases, and becomes critical again", () => {
    const shares = [0.5, 0.9, 0.96, ...new Array(40).fill(0.88), 0.97];
    expect(told(shares, 1000)).toEqual([
      "1000: risen pressure",
      "2000: risen critical",
      "13000: eased pressure",
      "43000: risen critical",
    ]);
  });

  it("counts what was given back as if it were in use, as it will be again", () => {
    const trigger = new Trigger(DEFAULT_THRESHOLDS);
    expect(trigger.feed(seen(0, 0.86))?.kind).toBe("risen");
    const releasedBytes = 0.2 * LIMIT;
    for (let at = 100; at < 60_000; at += 100) {
      expect(trigger.feed(seen(at, 0.66, { releasedBytes }))).toBeNull();
    }
    expect(trigger.feed(seen(60_000, 0.5, { releasedBytes }))).toBeNull();
    expect(trigger.feed(seen(71_000, 0.5, { releasedBytes }))?.kind).toBe("cleared");
  });

  it("names each reason, the nearest to its limit first", () => {
    const base = seen(0, 0.9, { avg10: 35, stall1s: 80, oomsSince: 2 });
    const outer = level(0.97, { path: "/outer" });
    const both = { ...base, sample: { ...base.sample, levels: [level(0.9), outer] } };
    expect(reasonsOf(both, DEFAULT_THRESHOLDS)).toMatchObject([
      { kind: "oom", level: "critical", value: 2 },
      { kind: "usage", level: "critical", path: "/outer", threshold: 0.95 },
      { kind: "usage", level: "pressure", path: "/sys/fs/cgroup", threshold: 0.85 },
      { kind: "stall", value: 35, threshold: 20 },
    ]);
    const quick = seen(0, 0.1, { avg10: 3, stall1s: 61 });
    expect(reasonsOf(quick, DEFAULT_THRESHOLDS)).toMatchObject([{ kind: "stall", value: 61 }]);
    const thresholds = resolveThresholds({ stall10s: null, stall1s: null });
    expect(reasonsOf(seen(0, 0.1, { avg10: 99, stall1s: 99 }), thresholds)).toEqual([]);
  });

  it("counts of a machine's memory only the last of it, as all who are on it use that", () => {
    const machine = (share: number) => {
      const base = seen(0, 0.1);
      const levels = [level(share, { source: "machine", path: "/proc/meminfo" })];
      return reasonsOf({ ...base, sample: { ...base.sample, levels } }, DEFAULT_THRESHOLDS);
    };
    expect(machine(0.94)).toEqual([]);
    expect(machine(0.96)).toMatchObject([{ level: "pressure", path: "/proc/meminfo" }]);
    expect(machine(0.96)[0]?.threshold).toBeCloseTo(0.95);
    expect(machine(0.99)).toMatchObject([{ level: "critical" }]);
  });

  it("takes no reserve for used that is only kept free", () => {
    const releasedBytes = 0.2 * LIMIT;
    expect(reasonsOf(seen(0, 0.8, { releasedBytes }), DEFAULT_THRESHOLDS)).toEqual([]);
  });

  it("takes notice of processors only where it is asked to", () => {
    const base = seen(0, 0.1, { throttled10s: 70 });
    const slow = { ...base, sample: { ...base.sample, cpu: stalls(80) } };
    expect(reasonsOf(slow, DEFAULT_THRESHOLDS)).toEqual([]);
    const thresholds = resolveThresholds({ cpuStall10s: 50, throttled10s: 50 });
    expect(reasonsOf(slow, thresholds).map(({ kind }) => kind)).toEqual(["cpu-stall", "throttled"]);
  });

  it.each([
    [{ usage: 1 }, /usage is 1; it is a share/],
    [{ usage: Number.NaN }, /usage is NaN/],
    [{ usage: 0.9, critical: 0.9 }, /critical is 0.9, and usage 0.9/],
    [{ stall10s: 0 }, /stall10s is 0; it is in per cent/],
    [{ stall1s: 101 }, /stall1s is 101/],
    [{ memory: 3 }, /no threshold called memory; there are usage, critical/],
  ])("refuses %j", (given, message) => {
    const refused = () => resolveThresholds(given as object);
    expect(refused).toThrow(agstateError("INVALID_ARGUMENT") as Error);
    expect(refused).toThrow(message);
  });

  it("keeps critical above a usage that is given alone", () => {
    expect(resolveThresholds({ usage: 0.97 })).toMatchObject({ usage: 0.97, critical: 0.985 });
  });

  /** Shares where something is decided, times from a look to a wait of minutes, and spells that are just calm for long enough. */
  const step = fc.record({
    dt: fc.constantFrom(20, 100, 1000, 4000, 9900, 10_000, 29_000, 31_000),
    share: fc.constantFrom(0.5, 0.74, 0.75, 0.84, 0.85, 0.89, 0.9, 0.94, 0.95, 0.99),
  });
  const spell = fc
    .record({ share: fc.constantFrom(0.5, 0.8, 0.89), ms: fc.constantFrom(9900, 10_000, 10_100) })
    .map(({ share, ms }) => [
      { dt: 100, share },
      { dt: ms, share },
    ]);
  const history = fc
    .array(
      fc.oneof(
        step.map((one) => [one]),
        spell,
      ),
      { maxLength: 60 },
    )
    .map((parts) => parts.flat());

  it("is what the rules say of everything that was seen, whatever that was", () => {
    fc.assert(
      fc.property(history, (steps) => {
        const trigger = new Trigger(DEFAULT_THRESHOLDS);
        const calm = calmThresholds(DEFAULT_THRESHOLDS);
        const rises = { pressure: [] as number[], critical: [] as number[] };
        const past: { at: number; share: number }[] = [];
        let at = 0;
        let since = 0;
        for (const { dt, share } of steps) {
          at += dt;
          past.push({ at, share });
          const before = trigger.level;
          const transition = trigger.feed(seen(at, share));
          if (before !== trigger.level) expect(transition).not.toBeNull();
          const lastOf = (times: number[]) => times.at(-1) ?? Number.NEGATIVE_INFINITY;
          // A rise to critical is one to pressure as well.
          const last = {
            critical: lastOf(rises.critical),
            pressure: Math.max(lastOf(rises.pressure), lastOf(rises.critical)),
          };
          if (transition?.kind === "risen") {
            const { level } = transition;
            expect(share).toBeGreaterThanOrEqual(
              DEFAULT_THRESHOLDS[level === "critical" ? "critical" : "usage"],
            );
            expect(before).not.toBe(level);
            expect(before).not.toBe("critical");
            expect(at - last[level]).toBeGreaterThanOrEqual(RISE_MIN_INTERVAL_MS);
            rises[level].push(at);
            since = at;
          } else if (transition !== null) {
            const bound = transition.kind === "cleared" ? calm.usage : calm.critical;
            const recent = past.filter((each) => each.at > since || each.share < bound);
            const lastNotCalm = past.findLast((each) => each.share >= bound);
            const firstCalm = recent.find((each) => each.at > (lastNotCalm?.at ?? -1));
            expect(share).toBeLessThan(bound);
            expect(at - (firstCalm?.at ?? at)).toBeGreaterThanOrEqual(CALM_MS);
          } else {
            // Nothing is missed.
            if (share >= 0.95 && at - last.critical >= RISE_MIN_INTERVAL_MS) {
              expect(trigger.level).toBe("critical");
            }
            if (share >= 0.85 && share < 0.95 && at - last.pressure >= RISE_MIN_INTERVAL_MS) {
              expect(trigger.level).not.toBe("none");
            }
          }
        }
      }),
      { numRuns: usually(300, 20_000) },
    );
  });
});
