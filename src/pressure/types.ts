/** Where a limit on memory comes from: a control group of either version, the machine as a whole, or V8's heap. */
export type MemorySource = "cgroup-v2" | "cgroup-v1" | "machine" | "heap";

/** One limit that holds for the process's memory, and what counts against it. */
export interface MemoryLevel {
  readonly source: MemorySource;
  /** The control group's directory as it is mounted, `/proc/meminfo`, or `heap`. */
  readonly path: string;
  /** What is in use and cannot simply be dropped: without page cache and reclaimable kernel memory. */
  readonly usedBytes: number;
  /** What was taken out of that. */
  readonly cacheBytes: number;
  /** What ends in a kill, or in being slowed to a crawl, whichever comes first. */
  readonly limitBytes: number;
  /** `memory.high`, where it is set: from there on the kernel slows the process. */
  readonly highBytes: number | null;
  /** `memory.max` or the like, where it is set: from there on the kernel kills. */
  readonly maxBytes: number | null;
}

/** How long tasks were held up, as the kernel's pressure stall information says. */
export interface StallTimes {
  /** Per cent of the last 10, 60 and 300 seconds. */
  readonly avg10: number;
  readonly avg60: number;
  readonly avg300: number;
  /** Microseconds since the machine or the control group began. */
  readonly totalUs: number;
}

export interface Stalls {
  /** The file that says so. */
  readonly path: string;
  /** Times in which at least one task was held up. */
  readonly some: StallTimes;
  /** Times in which all tasks were; null where the kernel does not say. */
  readonly full: StallTimes | null;
}

/** What has happened to a control group's memory since it began, as counts of `memory.events`. */
export interface MemoryEvents {
  readonly path: string;
  /** How often it was slowed at `memory.high`. */
  readonly high: number;
  /** How often it met `memory.max`. */
  readonly max: number;
  /** How often memory could not be had at all. */
  readonly oom: number;
  /** How many processes were killed for it. */
  readonly oomKill: number;
}

/** How a control group's processors were held back, as counts of `cpu.stat`. */
export interface Throttling {
  readonly path: string;
  readonly periods: number;
  readonly throttledPeriods: number;
  readonly throttledUs: number;
}

/** What there is to see of the process's memory and processors at one moment. */
export interface PressureSample {
  /** Milliseconds of a clock that only goes forward. */
  readonly at: number;
  /** Every limit that holds, outermost last; empty where nothing is known. */
  readonly levels: readonly MemoryLevel[];
  readonly memory: Stalls | null;
  readonly cpu: Stalls | null;
  /** Of the limited control groups that the process is in, added up. */
  readonly events: MemoryEvents | null;
  readonly throttling: Throttling | null;
}

/** Something that is not there to be watched; said once. */
export interface Absence {
  /** Such as `memory.pressure`. */
  readonly what: string;
  /** One line for people: what is missing, why, and what is watched in its place. */
  readonly message: string;
}
