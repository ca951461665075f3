import { Absences } from "./absences.js";
import { findThrottled, readEvents, readThrottling } from "./counts.js";
import { Files } from "./files.js";
import {
  type LimitedGroup,
  limitedOfV1,
  limitedOfV2,
  machineLevel,
  measure,
  type Reading,
} from "./levels.js";
import { findPlaces, type Places } from "./places.js";
import { groupWithStalls, readStalls } from "./stalls.js";
import type {
  Absence,
  MemoryEvents,
  MemoryLevel,
  PressureSample,
  Stalls,
  Throttling,
} from "./types.js";

/** How long the places of control groups are taken for true. */
const LOOK_EVERY_MS = 5_000;

export interface SamplerOptions {
  /** Put before every absolute path; for tests. */
  readonly root?: string;
  /** Whose control groups are read; the own process's unless given. */
  readonly pid?: number | "self";
  /** Milliseconds of a clock that only goes forward. */
  readonly now?: () => number;
}

/** Where to read, as it was last found. */
interface View {
  readonly places: Places;
  /** The version 2 group whose stalls are told apart from the machine's. */
  readonly stalling: string | null;
  readonly throttled: string | null;
}

/** What changes slowly, or is of no use for a decision within a second. */
interface Slow {
  readonly at: number;
  readonly limited: readonly LimitedGroup[];
  readonly machine: MemoryLevel | null;
  readonly cpu: Stalls | null;
  readonly events: MemoryEvents | null;
  readonly throttling: Throttling | null;
}

const NOWHERE: View = {
  places: { v2: null, memory: null, cpu: null, isTold: false, unseen: null },
  stalling: null,
  throttled: null,
};

/**
 * Reads what the kernel says of a process's memory and processors.
 *
 * It reads synchronously, for a tenth of a millisecond or so, and never throws: what is missing is left out of the sample,
 * and told by `absences`.
 */
export class Sampler {
  private readonly files: Files;
  private readonly missing = new Absences();
  private readonly pid: number | "self";
  private readonly now: () => number;
  private view = NOWHERE;
  private lookedAt = Number.NEGATIVE_INFINITY;
  private slow: Slow | undefined;

  constructor({ root = "", pid = "self", now = () => performance.now() }: SamplerOptions = {}) {
    this.files = new Files(root);
    this.pid = pid;
    this.now = now;
  }

  /**
   * What there is to see at this moment.
   *
   * @param options.statFrom - the part of its limit from which on a group's page cache is asked for, which is dear; below it
   *   `cacheBytes` is 0, and `usedBytes` all that is charged. 0 unless given.
   * @param options.slowEveryMs - for how long limits, the machine's memory, processors, and counts of events and throttling are taken
   *   for what they were; usage and stalls for memory are always read. 0 unless given.
   */
  sample({
    statFrom = 0,
    slowEveryMs = 0,
  }: {
    readonly statFrom?: number;
    readonly slowEveryMs?: number;
  } = {}): PressureSample {
    const at = this.now();
    if (at - this.lookedAt >= LOOK_EVERY_MS) this.look(at);
    const sample = this.read(at, statFrom, slowEveryMs);
    if (!this.files.takeLost()) return sample;
    // The group is gone, or the process was moved out of it: what was read is of no process any more.
    this.look(at);
    const again = this.read(at, statFrom, 0);
    this.files.takeLost();
    return again;
  }

  /** What was found to be missing since this was last asked; each thing is told once. */
  absences(): Absence[] {
    return this.missing.take();
  }

  /** Closes the files. A later sample opens them again. */
  close(): void {
    this.files.close();
    this.lookedAt = Number.NEGATIVE_INFINITY;
    this.slow = undefined;
  }

  private look(at: number): void {
    const { files } = this;
    this.lookedAt = at;
    this.slow = undefined;
    files.retry();
    const places = findPlaces(files, this.pid);
    if (places === null) return;
    // Files of groups that the process has left are not kept open.
    if (!isSame(places, this.view.places)) files.close();
    this.view = {
      places,
      stalling: groupWithStalls(files, places.v2),
      throttled: findThrottled(files, places),
    };
  }

  private read(at: number, statFrom: number, slowEveryMs: number): PressureSample {
    const { files, missing, view } = this;
    const isDue = this.slow === undefined || at - this.slow.at >= slowEveryMs;
    const slow = isDue ? this.readLimits(at) : (this.slow as Slow);
    const { limited, machine } = slow;
    const reading: Reading = { files, absences: missing, statFrom };
    const groups: MemoryLevel[] = [];
    for (const group of limited) {
      const level = measure(reading, group);
      if (level !== null) groups.push(level);
    }
    const levels = machine === null ? groups : [...groups, machine];
    if (levels.length === 0 && !files.exists("/proc/pressure")) {
      missing.add(
        "platform",
        `nothing is watched on this platform (${process.platform}): neither control groups nor /proc/meminfo can be read`,
      );
      return { at, levels, memory: null, cpu: null, events: null, throttling: null };
    }
    this.miss(groups, machine);
    const memory = readStalls(files, missing, view.stalling, "memory");
    this.slow = isDue ? this.readCounts(slow) : slow;
    const { cpu, events, throttling } = this.slow;
    return { at, levels, memory, cpu, events, throttling };
  }

  private readLimits(at: number): Slow {
    const { files, view } = this;
    const { v2, memory } = view.places;
    return {
      at,
      limited: [...limitedOfV2(files, v2), ...limitedOfV1(files, memory)],
      machine: machineLevel(files),
      cpu: null,
      events: null,
      throttling: null,
    };
  }

  private readCounts(slow: Slow): Slow {
    const { files, missing, view } = this;
    return {
      ...slow,
      cpu: readStalls(files, missing, view.stalling, "cpu"),
      events: readEvents(files, slow.limited, view.places),
      throttling: readThrottling(files, view.throttled),
    };
  }

  /** Says what is missing of control groups. */
  private miss(groups: readonly MemoryLevel[], machine: MemoryLevel | null): void {
    const { isTold, unseen, v2, memory } = this.view.places;
    const instead =
      machine === null ? "memory is not watched" : "the memory of the machine is watched";
    if (!isTold) {
      const path = `/proc/${this.pid}/cgroup`;
      this.missing.add(
        "cgroup",
        `${path} is missing or empty, so that no control group is found: ${instead}`,
      );
      return;
    }
    if (unseen !== null) {
      this.missing.add(
        "cgroup",
        `the control group ${unseen} is not in what is mounted here, so that its limits are not seen: ${instead}`,
      );
      return;
    }
    if (memory !== null) {
      const why = v2 === null ? "no cgroup v2 is mounted" : "cgroup v2 has no memory controller";
      this.missing.add("memory controller", `${why}: version 1's is used`);
    }
    if (groups.length === 0) {
      this.missing.add(
        "limit",
        `no control group is seen that limits the process's memory: ${instead}`,
      );
    }
  }
}

function isSame(a: Places, b: Places): boolean {
  const keyOf = ({ v2, memory, cpu }: Places) =>
    JSON.stringify([v2?.directories, memory?.directories, cpu?.directories]);
  return keyOf(a) === keyOf(b);
}
