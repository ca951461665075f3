import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";

/** Files of a kernel by path, as they stand under `/`. */
export type KernelFiles = Readonly<Record<string, string>>;

/** A folder that holds such files, and stands for `/`; gone when the test is over. */
export class KernelTree {
  readonly root = mkdtempSync(join(tmpdir(), "agstate-kernel-"));

  constructor(files: KernelFiles) {
    onTestFinished(() => rmSync(this.root, { recursive: true, force: true }));
    this.write(files);
  }

  write(files: KernelFiles): void {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(this.root + path), { recursive: true });
      writeFileSync(this.root + path, text);
    }
  }

  remove(path: string): void {
    rmSync(this.root + path, { recursive: true });
  }
}

const GiB = 2 ** 30;

/** `/proc` of a machine of 16 GiB, of which 4 GiB are in use and 3 GiB page cache. */
export const PROC: KernelFiles = {
  "/proc/meminfo": meminfo(16 * GiB, 12 * GiB, 9 * GiB),
  "/proc/pressure/memory": stalls(1, 0.5),
  "/proc/pressure/cpu": stalls(30),
};

export function meminfo(total: number, available: number, free: number): string {
  const line = (name: string, bytes: number) =>
    `${`${name}:`.padEnd(16)}${`${bytes / 1024}`.padStart(8)} kB\n`;
  return line("MemTotal", total) + line("MemFree", free) + line("MemAvailable", available);
}

export function stalls(some: number, full = 0): string {
  const line = (kind: string, avg10: number) =>
    `${kind} avg10=${avg10.toFixed(2)} avg60=0.25 avg300=0.12 total=${Math.round(avg10 * 1000)}\n`;
  return line("some", some) + line("full", full);
}

/** A line of `/proc/self/mountinfo`. */
export function mountLine(root: string, point: string, type: string, options = "rw"): string {
  return `30 22 0:27 ${root} ${point} rw,nosuid,relatime shared:9 - ${type} ${type} ${options}\n`;
}

export const V2_MOUNT = mountLine("/", "/sys/fs/cgroup", "cgroup2", "rw,nsdelegate");

interface GroupV2 {
  readonly current: number;
  readonly max?: number | "max";
  readonly high?: number | "max";
  readonly cache?: number;
  readonly slab?: number;
  readonly events?: string;
  readonly localEvents?: string;
  readonly pressure?: number;
  readonly cpuMax?: string;
  readonly throttled?: number;
}

/** A control group of version 2 that is not the root. */
export function groupV2(path: string, group: GroupV2): KernelFiles {
  const { current, max = "max", high = "max", cache = 0, slab = 0, pressure = 0 } = group;
  const zero = "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\n";
  const throttled = group.throttled ?? 0;
  return {
    [`${path}/cgroup.type`]: "domain\n",
    [`${path}/memory.current`]: `${current}\n`,
    [`${path}/memory.max`]: `${max}\n`,
    [`${path}/memory.high`]: `${high}\n`,
    [`${path}/memory.stat`]: `anon 4096\nfile ${cache}\ninactive_anon 7\ninactive_file ${cache}\nactive_file 0\nslab_reclaimable ${slab}\nslab_unreclaimable 9\n`,
    [`${path}/memory.events`]: group.events ?? zero,
    ...(group.localEvents && { [`${path}/memory.events.local`]: group.localEvents }),
    [`${path}/memory.pressure`]: stalls(pressure),
    [`${path}/cpu.pressure`]: stalls(pressure / 2),
    [`${path}/cpu.max`]: group.cpuMax ?? "max 100000\n",
    [`${path}/cpu.stat`]: `usage_usec 900\nnr_periods ${throttled * 10}\nnr_throttled ${throttled}\nthrottled_usec ${throttled * 1000}\n`,
  };
}

interface GroupV1 {
  readonly usage: number;
  readonly limit?: number | string;
  /** Page cache of the group and those below. */
  readonly cache?: number;
  readonly failures?: number;
  readonly kills?: number;
}

/** A control group of version 1's memory controller. */
export function groupV1(path: string, group: GroupV1): KernelFiles {
  const { usage, limit = "9223372036854771712", cache = 0, failures = 0, kills = 0 } = group;
  return {
    [`${path}/memory.usage_in_bytes`]: `${usage}\n`,
    [`${path}/memory.limit_in_bytes`]: `${limit}\n`,
    [`${path}/memory.stat`]: `cache 5\nrss 4096\ninactive_file 5\nactive_file 0\nhierarchical_memory_limit 9223372036854771712\ntotal_inactive_file ${cache}\ntotal_active_file 0\n`,
    [`${path}/memory.failcnt`]: `${failures}\n`,
    [`${path}/memory.oom_control`]: `oom_kill_disable 0\nunder_oom 0\noom_kill ${kills}\n`,
    [`${path}/memory.use_hierarchy`]: "1\n",
  };
}
