import type { Absences } from "./absences.js";
import type { Files } from "./files.js";
import { parseBytes, parseKeyed, parseLimit, parseMeminfo } from "./parse.js";
import type { Place } from "./places.js";
import type { MemoryLevel } from "./types.js";

/** What of a group's memory is page cache and such, which the kernel drops before it kills; by version. */
const DROPPABLE = {
  "cgroup-v2": ["inactive_file", "active_file", "slab_reclaimable"],
  "cgroup-v1": ["total_inactive_file", "total_active_file"],
} as const;

const USAGE = { "cgroup-v2": "memory.current", "cgroup-v1": "memory.usage_in_bytes" } as const;

const MEMINFO = "/proc/meminfo";

/** How levels are read: from which files, and from which part of its limit on a group's cache is asked for. */
export interface Reading {
  readonly files: Files;
  readonly absences: Absences;
  /** A ratio: below it the cache counts as used, since `memory.stat` is dear to read. */
  readonly statFrom: number;
}

/** A control group whose memory is limited. */
export interface LimitedGroup {
  readonly source: keyof typeof DROPPABLE;
  readonly path: string;
  readonly highBytes: number | null;
  readonly maxBytes: number | null;
  readonly limitBytes: number;
}

/** The limited ones of the control groups of version 2, the process's own first. */
export function limitedOfV2(files: Files, place: Place | null): LimitedGroup[] {
  return (place?.directories ?? []).flatMap((path) =>
    limited({
      source: "cgroup-v2",
      path,
      highBytes: limitOf(files, `${path}/memory.high`),
      maxBytes: limitOf(files, `${path}/memory.max`),
    }),
  );
}

/** The same of version 1's memory controller. */
export function limitedOfV1(files: Files, place: Place | null): LimitedGroup[] {
  const groups: LimitedGroup[] = [];
  for (const [i, path] of (place?.directories ?? []).entries()) {
    // Kernels before 5.11 may keep what is below a group out of its account; then its limit does not hold there.
    if (i > 0 && files.read(`${path}/memory.use_hierarchy`)?.trim() === "0") break;
    const maxBytes = limitOf(files, `${path}/memory.limit_in_bytes`);
    groups.push(...limited({ source: "cgroup-v1", path, highBytes: null, maxBytes }));
  }
  return groups;
}

function limited(group: Omit<LimitedGroup, "limitBytes">): LimitedGroup[] {
  const { highBytes, maxBytes } = group;
  if (highBytes === null && maxBytes === null) return [];
  return [{ ...group, limitBytes: Math.min(highBytes ?? Infinity, maxBytes ?? Infinity) }];
}

/** The machine's memory, or the container's where `/proc/meminfo` is made for it; null where it is not told. */
export function machineLevel(files: Files): MemoryLevel | null {
  const told = parseMeminfo(files.read(MEMINFO) ?? "");
  if (told === undefined) return null;
  return {
    source: "machine",
    path: MEMINFO,
    usedBytes: told.totalBytes - told.availableBytes,
    cacheBytes: told.availableBytes - told.freeBytes,
    limitBytes: told.totalBytes,
    highBytes: null,
    maxBytes: told.totalBytes,
  };
}

function limitOf(files: Files, path: string): number | null {
  return parseLimit(files.read(path) ?? "") ?? null;
}

/** What counts against a group's limit now; null where that cannot be read. */
export function measure(
  { files, absences, statFrom }: Reading,
  group: LimitedGroup,
): MemoryLevel | null {
  const { source, path, limitBytes } = group;
  const usageFile = USAGE[source];
  const chargedBytes = parseBytes(files.read(`${path}/${usageFile}`) ?? "");
  if (chargedBytes === undefined) {
    absences.add(
      usageFile,
      `${path}/${usageFile} cannot be read${reasonOf(files, `${path}/${usageFile}`)}: the limit that is set there is not watched`,
    );
    return null;
  }
  let cacheBytes = 0;
  if (chargedBytes >= statFrom * limitBytes) {
    const stat = files.read(`${path}/memory.stat`);
    if (stat === undefined) {
      absences.add(
        "memory.stat",
        `${path}/memory.stat cannot be read${reasonOf(files, `${path}/memory.stat`)}: page cache counts as memory in use`,
      );
    } else {
      const values = parseKeyed(stat);
      const droppable = DROPPABLE[source].reduce((sum, key) => sum + (values.get(key) ?? 0), 0);
      // Counters of several processors are added up late, so that the parts may pass the whole.
      cacheBytes = Math.min(droppable, chargedBytes);
    }
  }
  return { ...group, usedBytes: chargedBytes - cacheBytes, cacheBytes };
}

/** Why a file could not be read, in brackets. */
export function reasonOf(files: Files, path: string): string {
  const failure = files.failureOf(path);
  return failure === undefined ? "" : ` (${failure})`;
}
