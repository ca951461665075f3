import type { Files } from "./files.js";
import type { LimitedGroup } from "./levels.js";
import { parseCount, parseKeyed } from "./parse.js";
import type { Place, Places } from "./places.js";
import type { MemoryEvents, Throttling } from "./types.js";

/**
 * What happened at limits on the process's memory; null where no control group is limited.
 *
 * A group's `memory.events` counts what happened in groups below as well. What is met at a limit is therefore taken from
 * `memory.events.local`, of which the sum over the levels is right; and kills from the process's own group, which counts them
 * wherever the limit was: those that a group above counts may be of groups beside it, which are no concern of this process.
 */
export function readEvents(
  files: Files,
  levels: readonly LimitedGroup[],
  { v2, memory }: Pick<Places, "v2" | "memory">,
): MemoryEvents | null {
  const limited = levels.filter(({ source }) => source === "cgroup-v2");
  if (limited.length > 0) return eventsOfV2(files, limited, v2);
  return levels.some(({ source }) => source === "cgroup-v1") ? eventsOfV1(files, memory) : null;
}

function eventsOfV2(
  files: Files,
  limited: readonly LimitedGroup[],
  v2: Place | null,
): MemoryEvents | null {
  let events: MemoryEvents | null = null;
  for (const { path: directory } of limited) {
    const path = `${directory}/memory.events`;
    const all = files.read(path);
    if (all === undefined) continue;
    const below = parseKeyed(all);
    const local = files.read(`${path}.local`);
    const own = local === undefined ? null : parseKeyed(local);
    const last: MemoryEvents = events ?? { path, high: 0, max: 0, oom: 0, oomKill: 0 };
    // Kernels before 5.2 do not tell them apart; there the outermost count is the one that has all.
    const count = (key: "high" | "max" | "oom") =>
      own === null ? Math.max(last[key], below.get(key) ?? 0) : last[key] + (own.get(key) ?? 0);
    events = { ...last, high: count("high"), max: count("max"), oom: count("oom") };
  }
  return events && { ...events, oomKill: killsIn(files, v2) };
}

/** How many processes were killed in the innermost group that counts it. */
function killsIn(files: Files, v2: Place | null): number {
  for (const directory of v2?.directories ?? []) {
    const kills = parseKeyed(files.read(`${directory}/memory.events`) ?? "").get("oom_kill");
    if (kills !== undefined) return kills;
  }
  return 0;
}

/** Version 1 counts each group for itself, and says neither of slowing nor of memory that could not be had. */
function eventsOfV1(files: Files, memory: Place | null): MemoryEvents | null {
  const own = memory?.directories[0];
  if (memory === null || own === undefined) return null;
  let max = 0;
  for (const directory of memory.directories) {
    max += parseCount(files.read(`${directory}/memory.failcnt`) ?? "") ?? 0;
  }
  const path = `${own}/memory.oom_control`;
  const oomKill = parseKeyed(files.read(path) ?? "").get("oom_kill") ?? 0;
  return { path, high: 0, max, oom: 0, oomKill };
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
