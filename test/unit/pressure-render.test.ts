import stringWidth from "string-width";
import { describe, expect, it } from "vitest";
import { createPaint } from "../../src/cli/render/paint.js";
import { blockOf, lineOf, type PressureView } from "../../src/cli/render/pressure.js";
import type { MemoryLevel, PressureSample, Stalls } from "../../src/pressure/types.js";

const plain = createPaint(false);
const MB = 1_000_000;

function stalls(path: string, avg10: number): Stalls {
  return { path, some: { avg10, avg60: avg10 / 2, avg300: 0, totalUs: 5 }, full: null };
}

const POD =
  "/sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod7.slice/cri-containerd-9.scope";

const HIGH: MemoryLevel = {
  source: "cgroup-v2",
  path: POD,
  usedBytes: 380 * MB,
  cacheBytes: 15 * MB,
  limitBytes: 400 * MB,
  highBytes: 400 * MB,
  maxBytes: 512 * MB,
};
const MACHINE: MemoryLevel = {
  source: "machine",
  path: "/proc/meminfo",
  usedBytes: 4000 * MB,
  cacheBytes: 3000 * MB,
  limitBytes: 16_000 * MB,
  highBytes: null,
  maxBytes: 16_000 * MB,
};

const FIRST: PressureSample = {
  at: 0,
  levels: [HIGH, MACHINE],
  memory: stalls(`${POD}/memory.pressure`, 12.34),
  cpu: stalls("/proc/pressure/cpu", 100),
  events: { path: `${POD}/memory.events`, high: 10, max: 5, oom: 1, oomKill: 1 },
  throttling: { path: `${POD}/cpu.stat`, periods: 100, throttledPeriods: 10, throttledUs: 5000 },
};
const LATER: PressureSample = {
  ...FIRST,
  at: 1000,
  events: { path: `${POD}/memory.events`, high: 13, max: 5, oom: 1, oomKill: 2 },
  throttling: { path: `${POD}/cpu.stat`, periods: 110, throttledPeriods: 12, throttledUs: 17_000 },
};

function view(sample: PressureSample, more: Partial<PressureView> = {}): PressureView {
  const date = new Date("2026-01-02T03:04:05Z");
  return { sample, first: FIRST, date, pid: 4711, usage: 0.85, ...more };
}

describe("a sample as a block", () => {
  it("says what holds, how near it is, what waited, and what happened since", () => {
    expect(blockOf(view(LATER), plain)).toEqual([
      "Limits on the memory of process 4711  03:04:05Z",
      "  ...ble-pod7.slice/cri-containerd-9.scope  cgroup v2, memory.high  agstate acts",
      "    [#################|#:]   95 %  380 MB of 400 MB  max 512 MB  cache 15 MB",
      "  /proc/meminfo  the machine",
      "    [#####::::          |]   25 %  4.0 GB of 16 GB  cache 3.0 GB",
      "  # in use  : page cache  | agstate acts (85 %; of a machine 95 %)",
      "Tasks waited, of the last 10 s and 60 s",
      "  for memory       12.3 %    6.2 %  ...ce/cri-containerd-9.scope/memory.pressure",
      "  for processors  100.0 %   50.0 %  /proc/pressure/cpu",
      "Since this command began",
      "  memory: slowed 3, at the limit 0, none left 0, killed 1",
      "  processors: held back in 2 of 10 periods, for 12 ms",
    ]);
  });

  it("says that agstate acts on waits for memory, and not for processors", () => {
    const waiting = { ...LATER, memory: stalls("/m", 20), cpu: stalls("/c", 100) };
    const lines = blockOf(view({ ...waiting, levels: [MACHINE] }), plain);
    expect(lines.filter((line) => line.endsWith("  agstate acts"))).toEqual([
      "  for memory       20.0 %   10.0 %  /m  agstate acts",
    ]);
  });

  it("fits 80 columns, with colours too, whatever the numbers", () => {
    const events = { path: "x", high: 99_999, max: 99_999, oom: 99_999, oomKill: 99_999 };
    const wide = { ...HIGH, usedBytes: 888 * MB, limitBytes: 999 * MB, highBytes: 999 * MB };
    const levels = [
      { ...wide, maxBytes: 999_000 * MB, cacheBytes: 999 * MB },
      { ...wide, maxBytes: 999 * MB, highBytes: 999_000 * MB },
    ];
    for (const colour of [true, false]) {
      for (const line of blockOf(
        view({ ...LATER, memory: stalls(`${POD}/x`, 100), events, levels }),
        createPaint(colour),
      )) {
        expect(stringWidth(line), line).toBeLessThanOrEqual(80);
      }
    }
  });

  it("counts all that ever was where it is looked at once, and anew in another group", () => {
    const once = blockOf(view(LATER, { first: null }), plain);
    expect(once).toContain("Ever since the control group began");
    expect(once.join("\n")).toContain("slowed 13, ");
    const moved = { ...LATER, events: { path: "/b", high: 2, max: 0, oom: 0, oomKill: 0 } };
    expect(blockOf(view(moved), plain).join("\n")).toContain("slowed 2, ");
  });

  it("says of high above the limit that it is there, and of what is unknown that it is", () => {
    const level = { ...HIGH, limitBytes: 512 * MB, highBytes: 600 * MB };
    expect(blockOf(view({ ...LATER, levels: [level] }), plain)[2]).toContain("high 600 MB");
    const nothing = { at: 0, levels: [], memory: null, cpu: null, events: null, throttling: null };
    expect(blockOf(view(nothing, { pid: "self", first: null }), plain)).toEqual([
      "Limits on the memory of this process  03:04:05Z",
      "  no limit is known",
      "Tasks waited, of the last 10 s and 60 s",
      "  not told by this kernel",
      "Ever since the control group began",
      "  memory: nothing is counted, as no control group has a limit",
    ]);
  });

  it("shows nothing of a path that acts on a terminal", () => {
    const level = { ...HIGH, path: "/a\u001b[2J" };
    expect(blockOf(view({ ...LATER, levels: [level] }), plain).join("")).not.toContain("\u001b");
  });
});

describe("a sample as a line", () => {
  it("is of the level nearest to where agstate acts", () => {
    expect(lineOf(view(LATER), plain)).toBe(
      "03:04:05Z   95 %  380 MB of 400 MB  cgroup v2  agstate acts  waits: memory 12.3 %, cpu 100.0 %  slowed 3  killed 1",
    );
    expect(lineOf(view({ ...FIRST, levels: [MACHINE] }), plain)).toBe(
      "03:04:05Z   25 %  4.0 GB of 16 GB  the machine  waits: memory 12.3 %, cpu 100.0 %",
    );
  });

  it("is not of a machine that is fuller than a group, and on which agstate does not act yet", () => {
    const group = { ...HIGH, usedBytes: 344 * MB };
    const machine = { ...MACHINE, usedBytes: 14_400 * MB };
    const line = lineOf(view({ ...FIRST, levels: [group, machine] }), plain);
    expect(line).toContain("   86 %  344 MB of 400 MB  cgroup v2  agstate acts");
  });

  it("says that a limit is met when it is, and not before", () => {
    const levels = [{ ...MACHINE, usedBytes: MACHINE.limitBytes - 1 }];
    expect(lineOf(view({ ...FIRST, levels }), plain)).toContain("   99 %  16 GB of 16 GB");
    const met = [{ ...MACHINE, usedBytes: MACHINE.limitBytes }];
    expect(lineOf(view({ ...FIRST, levels: met }), plain)).toContain("  100 %  16 GB of 16 GB");
  });
});
