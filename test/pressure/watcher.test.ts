import { describe, expect, it } from "vitest";
import { Shared } from "../../src/pressure/shared.js";
import { DEFAULT_THRESHOLDS, resolveThresholds } from "../../src/pressure/thresholds.js";
import type { Absence, PressureSample } from "../../src/pressure/types.js";
import { Watcher, type WatcherMessage } from "../../src/pressure/watcher.js";

const MIB = 1024 * 1024;

/** What a machine of 512 MiB shows. */
interface Shown {
  readonly usedMib?: number;
  readonly avg10?: number;
  readonly stalledMs?: number;
  readonly ooms?: number;
  readonly kills?: number;
  readonly throttled?: number;
  readonly path?: string;
}

function begin(options: { reserveBytes?: number; throttled10s?: number } = {}) {
  const { reserveBytes = 0, throttled10s } = options;
  const shared = new Shared();
  const messages: WatcherMessage[] = [];
  const asked: (number | undefined)[] = [];
  const absent: Absence[] = [];
  let shown: Shown = {};
  let at = 0;
  const sample = ({ statFrom }: { statFrom?: number } = {}): PressureSample => {
    asked.push(statFrom);
    const { usedMib = 100, avg10 = 0, stalledMs = 0, ooms = 0, kills = 0, throttled = 0 } = shown;
    const path = shown.path ?? "/cg";
    const some = { avg10, avg60: 0, avg300: 0, totalUs: stalledMs * 1000 };
    const limit = { limitBytes: 512 * MIB, highBytes: null, maxBytes: 512 * MIB };
    return {
      at,
      levels: [{ source: "cgroup-v2", path, usedBytes: usedMib * MIB, cacheBytes: 0, ...limit }],
      memory: { path: `${path}/memory.pressure`, some, full: null },
      cpu: null,
      events: { path: `${path}/memory.events`, high: 0, max: 0, oom: ooms, oomKill: kills },
      throttling: {
        path: `${path}/cpu.stat`,
        periods: at / 100,
        throttledPeriods: throttled,
        throttledUs: 0,
      },
    };
  };
  const thresholds =
    throttled10s === undefined ? DEFAULT_THRESHOLDS : resolveThresholds({ throttled10s });
  const sampler = { sample, absences: () => absent.splice(0) };
  const watcher = new Watcher({ thresholds, reserveBytes }, sampler, shared, (m) =>
    messages.push(m),
  );
  return {
    shared,
    messages,
    asked,
    absent,
    /** Lets so many milliseconds pass, and looks. */
    look(next: Shown, ms = 100): boolean {
      shown = next;
      at += ms;
      return watcher.look();
    },
  };
}

const kinds = (messages: readonly WatcherMessage[]) =>
  messages.map((m) =>
    m.kind === "risen" ? `risen ${m.reasons.map((r) => r.kind).join(" ")}` : m.kind,
  );

describe("the thread that watches", () => {
  it("tells a rise once, with what it saw, and has said so in shared memory before", () => {
    const { look, messages, shared } = begin();
    expect(look({ usedMib: 100 })).toBe(false);
    expect(shared.level).toBe("none");
    // Near being short it is worth looking more often.
    expect(look({ usedMib: 400 })).toBe(true);
    expect(messages).toEqual([]);
    expect(look({ usedMib: 440 })).toBe(true);
    expect(shared.level).toBe("pressure");
    look({ usedMib: 445 });
    expect(messages).toMatchObject([
      { kind: "risen", level: "pressure", releasedBytes: 0, sample: { at: 300 } },
    ]);
    look({ usedMib: 500 });
    expect(shared.level).toBe("critical");
    for (let i = 0; i < 200; i++) look({ usedMib: 100 });
    expect(shared.level).toBe("none");
    expect(kinds(messages)).toEqual(["risen usage", "risen usage", "cleared"]);
  });

  it("gives the reserve back as memory becomes short, and takes it anew only where there is room for it", () => {
    const { look, messages, asked } = begin({ reserveBytes: 64 * MIB });
    look({ usedMib: 100 });
    look({ usedMib: 440 });
    expect(messages.at(-1)).toMatchObject({ kind: "risen", releasedBytes: 64 * MIB });
    // 376 MiB and the reserve are as much as before: taking it anew would be what memory becomes short by.
    for (let i = 0; i < 400; i++) look({ usedMib: 376 });
    expect(messages).toHaveLength(1);
    // How much of it is page cache matters now at any usage.
    expect(asked.at(-1)).toBe(0);
    for (let i = 0; i < 400; i++) look({ usedMib: 200 });
    expect(kinds(messages)).toEqual(["risen usage", "cleared"]);
    expect(asked.at(-1)).toBeCloseTo(0.7);
    look({ usedMib: 440 }, 60_000);
    expect(messages.at(-1)).toMatchObject({ kind: "risen", releasedBytes: 64 * MIB });
  });

  it("takes no reserve where there is no room for it from the beginning", () => {
    const { look, messages } = begin({ reserveBytes: 64 * MIB });
    look({ usedMib: 350 });
    look({ usedMib: 440 });
    expect(messages.at(-1)).toMatchObject({ kind: "risen", releasedBytes: 0 });
  });

  it("sees tasks wait within a second, by the growth of the total", () => {
    const { look, messages } = begin();
    for (let i = 0; i < 30; i++) look({ stalledMs: i * 40 });
    expect(messages).toEqual([]);
    for (let i = 0; i < 9; i++) look({ stalledMs: 1200 + i * 90 });
    expect(kinds(messages)).toEqual(["risen stall"]);
  });

  it("takes counts of another control group for no growth", () => {
    const { look, messages } = begin();
    for (let i = 0; i < 20; i++) look({ stalledMs: 0 });
    look({ stalledMs: 1e9, ooms: 50, kills: 50, path: "/moved" });
    look({ stalledMs: 1e9, ooms: 50, kills: 50, path: "/moved" });
    expect(messages).toEqual([]);
    look({ stalledMs: 1e9, ooms: 50, kills: 51, path: "/moved" });
    expect(messages).toMatchObject([{ level: "critical", reasons: [{ kind: "oom", value: 1 }] }]);
  });

  it("watches throttling where it is asked to, and the heap that the main thread tells of", () => {
    const { look, messages, shared } = begin({ throttled10s: 50 });
    const throttled = 40;
    for (let i = 0; i < 200; i++) look({ throttled: i * 0.2 });
    expect(messages).toEqual([]);
    shared.setHeap(3.9e9, 4e9);
    look({ throttled });
    expect(messages).toMatchObject([
      { level: "critical", reasons: [{ kind: "usage", path: "heap" }] },
    ]);
    shared.setHeap(1e9, 4e9);
    for (let i = 0; i < 400; i++) look({ throttled });
    for (let i = 0; i < 200; i++) look({ throttled: throttled + i * 0.6 });
    expect(kinds(messages)).toEqual(["risen usage", "cleared", "risen throttled"]);
  });

  it("tells of each thing that cannot be watched", () => {
    const { look, messages, absent } = begin();
    absent.push({ what: "memory.pressure", message: "there is no memory.pressure" });
    look({});
    look({});
    expect(messages).toEqual([
      { kind: "absent", what: "memory.pressure", message: "there is no memory.pressure" },
    ]);
  });
});
