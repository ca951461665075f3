import type { Files } from "./files.js";
import type { LimitedGroup } from "./levels.js";
import { parseCount, parseKeyed } from "./parse.js";
import type { Place, Places } from "./places.js";
import type { MemoryEvents, Throttling } from "./types.js";

/**
 * What happened at limits on the process's memory; null where no control group is limited.
 *
 * A group's `memory.events` counts what happened in groups below as well, and so in those that are not the process's. What is
 * met at a limit is therefore taken from `memory.events.local`, of which the sum over the levels is right. Kills are counted
 * where the process was, which may be below every limit, so that the outermost count is the one that has all.
 */
export function readEvents(
  files: Files,
  levels: readonly LimitedGroup[],
  memory: Place | null,
): MemoryEvents | null {
  const limited = levels.filter(({ source }) => source === "cgroup-v2");
  if (limited.length > 0) return eventsOfV2(files, limited);
  return levels.some(({ source }) => source === "cgroup-v1") ? eventsOfV1(files, memory) : null;
}

function eventsOfV2(files: Files, limited: readonly LimitedGroup[]): MemoryEvents | null {
  let events: MemoryEvents | null = null;
  for (const { path: directory } of limited) {
    const path = `${directory}/memory.events`;
    const all = files.read(path);
    if (all === undefined) continue;
    const below = parseKeyed(all);
    const local = files.read(`${path}.local`);
    const own = local === undefined ? null : parseKeyed(local);
    const last: MemoryEvents = events ?? { path, high: 0, max: 0, oom: 0, oomKill: 0 };
    const count = (key: "high" | "max" | "oom") =>
      own === null ? Math.max(last[key], below.get(key) ?? 0) : last[key] + (own.get(key) ?? 0);
    events = {
      path: last.path,
      high: count("high"),
      max: count("max"),
      oom: count("oom"),
      oomKill: Math.max(last.oomKill, below.get("oom_kill") ?? 0),
    };
  }
  return events;
}

/** Version 1 counts a group for itself, and says neither of slowing nor of memory that could not be had. */
function eventsOfV1(files: Files, memory: Place | null): MemoryEvents | null {
  let max = 0;
  let oomKill = 0;
  for (const directory of memory?.directories ?? []) {
    max += parseCount(files.read(`${directory}/memory.failcnt`) ?? "") ?? 0;
    const control = parseKeyed(files.read(`${directory}/memory.oom_control`) ?? "");
    oomKill += control.get("oom_kill") ?? 0;
  }
  const own = memory?.directories[0];
  return own === undefined
    ? null
    : { path: `${own}/memory.oom_control`, high: 0, max, oom: 0, oomKill };
}

/** The innermost group whose processors are limited, or the process's own; null where none counts that. */
export function findThrottled(files: Files, { v2, cpu }: Places): string | null {
  const isLimitedV2 = (directory: string) => /^\d/.test(files.read(`${directory}/cpu.max`) ?? "");
  const isLimitedV1 = (directory: string) =>
    (parseCount(files.read(`${directory}/cpu.cfs_quota_us`) ?? "") ?? 0) > 0;
  const counts = (directory: string) =>
    parseKeyed(files.read(`${directory}/cpu.stat`) ?? "").has("nr_periods");
  return (
    v2?.directories.find(isLimitedV2) ??
    cpu?.directories.find(isLimitedV1) ??
    [v2?.directories[0], cpu?.directories[0]].find(
      (directory) => directory !== undefined && counts(directory),
    ) ??
    null
  );
}

/** How a group's processors were held back; null where it does not say. */
export function readThrottling(files: Files, directory: string | null): Throttling | null {
  if (directory === null) return null;
  const path = `${directory}/cpu.stat`;
  const values = parseKeyed(files.read(path) ?? "");
  const periods = values.get("nr_periods");
  const throttledPeriods = values.get("nr_throttled");
  // Nanoseconds are version 1's.
  const nanoseconds = values.get("throttled_time");
  const throttledUs =
    values.get("throttled_usec") ??
    (nanoseconds === undefined ? undefined : Math.round(nanoseconds / 1000));
  if (periods === undefined || throttledPeriods === undefined || throttledUs === undefined) {
    return null;
  }
  return { path, periods, throttledPeriods, throttledUs };
}
