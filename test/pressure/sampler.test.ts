import { describe, expect, it, onTestFinished } from "vitest";
import { Sampler } from "../../src/pressure/sampler.js";
import {
  groupV1,
  groupV2,
  type KernelFiles,
  KernelTree,
  meminfo,
  mountLine,
  PROC,
  stalls,
  V2_MOUNT,
} from "../support/kernel-files.js";

const MiB = 2 ** 20;
const GiB = 2 ** 30;
const FS = "/sys/fs/cgroup";

/** A tree and a sampler of it, by a clock that the test moves. */
function watch(files: KernelFiles, pid: number | "self" = "self") {
  const tree = new KernelTree(files);
  let at = 0;
  const sampler = new Sampler({ root: tree.root, pid, now: () => at });
  onTestFinished(() => sampler.close());
  return {
    tree,
    sampler,
    sample: (statFrom?: number) => sampler.sample(statFrom === undefined ? {} : { statFrom }),
    pass: (ms: number) => {
      at += ms;
    },
    missing: () => sampler.absences().map(({ what }) => what),
  };
}

const POD = "/kubepods.slice/kubepods-pod7.slice";
const BOX = `${POD}/cri-containerd-9.scope`;
const SCOPE = "/system.slice/docker-c0ffee.scope";

/** A layout, and what is seen in it: levels as path and limit, files of stalls, and what is missing. */
interface Layout {
  readonly name: string;
  readonly files: KernelFiles;
  readonly levels: readonly (readonly [string, number])[];
  readonly stalls?: string | null;
  readonly missing: readonly string[];
}

const MACHINE = ["/proc/meminfo", 16 * GiB] as const;
const WHOLE = "/proc/pressure/memory";

const LAYOUTS: readonly Layout[] = [
  {
    name: "a container with a namespace of its own",
    files: {
      ...PROC,
      "/proc/self/cgroup": "0::/\n",
      "/proc/self/mountinfo": V2_MOUNT,
      ...groupV2(FS, { current: 300 * MiB, max: 512 * MiB }),
    },
    levels: [[FS, 512 * MiB], MACHINE],
    stalls: `${FS}/memory.pressure`,
    missing: [],
  },
  {
    name: "a pod whose limit is its parent's only",
    files: {
      ...PROC,
      "/proc/self/cgroup": `0::${BOX}\n`,
      "/proc/self/mountinfo": V2_MOUNT,
      [`${FS}/cgroup.controllers`]: "cpu memory\n",
      ...groupV2(`${FS}/kubepods.slice`, { current: 5 * GiB, max: 8 * GiB }),
      ...groupV2(FS + POD, { current: 300 * MiB, max: 512 * MiB, high: 400 * MiB }),
      ...groupV2(FS + BOX, { current: 200 * MiB }),
    },
    levels: [[FS + POD, 400 * MiB], [`${FS}/kubepods.slice`, 8 * GiB], MACHINE],
    stalls: `${FS + BOX}/memory.pressure`,
    missing: [],
  },
  {
    name: "a group whose own controller is off, under a limit",
    files: {
      ...PROC,
      "/proc/self/cgroup": "0::/app.slice/worker\n",
      "/proc/self/mountinfo": V2_MOUNT,
      ...groupV2(`${FS}/app.slice`, { current: 300 * MiB, max: 512 * MiB }),
      [`${FS}/app.slice/worker/cgroup.type`]: "domain\n",
      [`${FS}/app.slice/worker/memory.pressure`]: stalls(4),
      [`${FS}/app.slice/worker/cpu.pressure`]: stalls(4),
    },
    levels: [[`${FS}/app.slice`, 512 * MiB], MACHINE],
    stalls: `${FS}/app.slice/worker/memory.pressure`,
    missing: [],
  },
  {
    name: "a container without a namespace, its own group mounted",
    files: {
      ...PROC,
      "/proc/self/cgroup": `0::${SCOPE}\n`,
      "/proc/self/mountinfo": mountLine(SCOPE, FS, "cgroup2"),
      ...groupV2(FS, { current: 300 * MiB, max: 512 * MiB }),
    },
    levels: [[FS, 512 * MiB], MACHINE],
    stalls: `${FS}/memory.pressure`,
    missing: [],
  },
  {
    name: "a container without a namespace, an ancestor mounted",
    files: {
      ...PROC,
      "/proc/self/cgroup": `0::${BOX}\n`,
      "/proc/self/mountinfo": mountLine(POD, FS, "cgroup2"),
      ...groupV2(FS, { current: 300 * MiB, max: 512 * MiB }),
      ...groupV2(`${FS}/cri-containerd-9.scope`, { current: 100 * MiB, max: 256 * MiB }),
    },
    levels: [[`${FS}/cri-containerd-9.scope`, 256 * MiB], [FS, 512 * MiB], MACHINE],
    stalls: `${FS}/cri-containerd-9.scope/memory.pressure`,
    missing: [],
  },
  {
    name: "a process outside of the namespace's root",
    files: {
      ...PROC,
      "/proc/self/cgroup": "0::/../other.scope\n",
      "/proc/self/mountinfo": V2_MOUNT,
      ...groupV2(FS, { current: 300 * MiB, max: 512 * MiB }),
    },
    levels: [MACHINE],
    stalls: WHOLE,
    missing: ["cgroup", "memory.pressure"],
  },
  {
    name: "a mount that was made outside of the namespace, and shows the way to a process there",
    files: {
      ...PROC,
      "/proc/self/cgroup": "0::/../other.scope\n",
      "/proc/self/mountinfo": mountLine("/..", FS, "cgroup2"),
      ...groupV2(FS, { current: 3 * GiB, max: 4 * GiB }),
      ...groupV2(`${FS}/other.scope`, { current: 300 * MiB, max: 512 * MiB }),
    },
    levels: [[`${FS}/other.scope`, 512 * MiB], [FS, 4 * GiB], MACHINE],
    stalls: `${FS}/other.scope/memory.pressure`,
    missing: [],
  },
  {
    // As captured of a machine whose controllers are all version 1's.
    name: "a mixed machine: controllers of version 1, and version 2 without any",
    files: {
      ...PROC,
      "/proc/self/cgroup":
        "9:name=systemd:/\n8:pids:/\n7:blkio:/\n6:freezer:/\n5:devices:/\n4:memory:/agents/a1\n3:cpuset:/\n2:cpuacct:/\n1:cpu:/\n0::/\n",
      "/proc/self/mountinfo":
        "22 26 0:21 / /sys rw,relatime - sysfs sysfs rw\n30 22 0:27 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n31 30 0:28 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n32 30 0:29 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct\n34 30 0:31 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n39 30 0:36 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd\n40 30 0:37 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n",
      ...groupV1(`${FS}/memory`, { usage: 3_127_848_960 }),
      ...groupV1(`${FS}/memory/agents`, { usage: 3_527_000_064, limit: 8 * GiB }),
      ...groupV1(`${FS}/memory/agents/a1`, { usage: 2_558_590_976 }),
      [`${FS}/cpu/cpu.cfs_quota_us`]: "-1\n",
      [`${FS}/cpu/cpu.stat`]: "nr_periods 0\nnr_throttled 0\nthrottled_time 0\nnr_bursts 0\n",
      [`${FS}/unified/cgroup.controllers`]: "hugetlb\n",
      [`${FS}/unified/cpu.stat`]: "usage_usec 21227764000\nuser_usec 1\nsystem_usec 5\n",
      [`${FS}/unified/memory.pressure`]: stalls(2),
      [`${FS}/unified/cpu.pressure`]: stalls(36.6),
    },
    levels: [[`${FS}/memory/agents`, 8 * GiB], MACHINE],
    stalls: WHOLE,
    missing: ["memory controller", "memory.pressure"],
  },
  {
    name: "a mixed machine whose groups of version 2 are used, without controllers",
    files: {
      ...PROC,
      "/proc/self/cgroup": "4:memory:/app\n0::/system.slice/app.service\n",
      "/proc/self/mountinfo":
        mountLine("/", `${FS}/memory`, "cgroup", "rw,memory") +
        mountLine("/", `${FS}/unified`, "cgroup2"),
      ...groupV1(`${FS}/memory/app`, { usage: GiB, limit: 2 * GiB }),
      [`${FS}/unified/system.slice/app.service/cgroup.type`]: "domain\n",
      [`${FS}/unified/system.slice/app.service/memory.pressure`]: stalls(2),
      [`${FS}/unified/system.slice/app.service/cpu.pressure`]: stalls(2),
    },
    levels: [[`${FS}/memory/app`, 2 * GiB], MACHINE],
    stalls: `${FS}/unified/system.slice/app.service/memory.pressure`,
    missing: ["memory controller"],
  },
  {
    name: "version 1 only, in a container without a namespace",
    files: {
      ...PROC,
      "/proc/self/cgroup":
        "6:cpu,cpuacct:/docker/c0ffee\n4:memory,hugetlb:/docker/c0ffee\n0::/docker/c0ffee\n",
      "/proc/self/mountinfo":
        mountLine("/docker/c0ffee", `${FS}/cpu,cpuacct`, "cgroup", "rw,cpu,cpuacct") +
        mountLine("/docker/c0ffee", `${FS}/memory`, "cgroup", "rw,memory,hugetlb"),
      ...groupV1(`${FS}/memory`, { usage: GiB, limit: 2 * GiB }),
      [`${FS}/cpu,cpuacct/cpu.stat`]: "nr_periods 5\nnr_throttled 1\nthrottled_time 2500\n",
    },
    levels: [[`${FS}/memory`, 2 * GiB], MACHINE],
    stalls: WHOLE,
    missing: ["memory controller", "memory.pressure"],
  },
  {
    name: "an old kernel that does not count what is below a group of version 1",
    files: {
      ...PROC,
      "/proc/self/cgroup": "4:memory:/outer/inner\n",
      "/proc/self/mountinfo": mountLine("/", `${FS}/memory`, "cgroup", "rw,memory"),
      ...groupV1(`${FS}/memory/outer`, { usage: GiB, limit: 2 * GiB }),
      [`${FS}/memory/outer/memory.use_hierarchy`]: "0\n",
      ...groupV1(`${FS}/memory/outer/inner`, { usage: GiB, limit: 4 * GiB }),
    },
    levels: [[`${FS}/memory/outer/inner`, 4 * GiB], MACHINE],
    stalls: WHOLE,
    missing: ["memory controller", "memory.pressure"],
  },
  {
    name: "several mounts of one hierarchy, of which one shows more",
    files: {
      ...PROC,
      "/proc/self/cgroup": `0::${BOX}\n`,
      "/proc/self/mountinfo":
        mountLine(POD, "/run/pod", "cgroup2") +
        mountLine("/", "/run/all", "cgroup2") +
        mountLine("/", "/run/gone", "cgroup2"),
      ...groupV2("/run/pod", { current: 300 * MiB, max: 512 * MiB }),
      ...groupV2("/run/pod/cri-containerd-9.scope", { current: 100 * MiB }),
      ...groupV2("/run/all/kubepods.slice", { current: 3 * GiB, max: 8 * GiB }),
      ...groupV2(`/run/all${POD}`, { current: 300 * MiB, max: 512 * MiB }),
      ...groupV2(`/run/all${BOX}`, { current: 100 * MiB }),
    },
    levels: [[`/run/all${POD}`, 512 * MiB], ["/run/all/kubepods.slice", 8 * GiB], MACHINE],
    stalls: `/run/all${BOX}/memory.pressure`,
    missing: [],
  },
  {
    name: "a mount that hides an earlier one at its point",
    files: {
      ...PROC,
      "/proc/self/cgroup": `0::${SCOPE}\n`,
      "/proc/self/mountinfo": V2_MOUNT + mountLine(SCOPE, FS, "cgroup2"),
      ...groupV2(FS, { current: 300 * MiB, max: 512 * MiB }),
    },
    levels: [[FS, 512 * MiB], MACHINE],
    stalls: `${FS}/memory.pressure`,
    missing: [],
  },
  {
    name: "a mount point and groups with spaces and colons",
    files: {
      ...PROC,
      "/proc/self/cgroup": "0::/my app:1\n",
      "/proc/self/mountinfo": mountLine("/", "/mnt/c\\040groups", "cgroup2"),
      ...groupV2("/mnt/c groups/my app:1", { current: 300 * MiB, max: 512 * MiB }),
    },
    levels: [["/mnt/c groups/my app:1", 512 * MiB], MACHINE],
    stalls: "/mnt/c groups/my app:1/memory.pressure",
    missing: [],
  },
  {
    name: "a group that the kernel has removed, under one that holds",
    files: {
      ...PROC,
      "/proc/self/cgroup": "0::/app.slice/worker (deleted)\n",
      "/proc/self/mountinfo": V2_MOUNT,
      ...groupV2(`${FS}/app.slice`, { current: 300 * MiB, max: 512 * MiB }),
    },
    levels: [[`${FS}/app.slice`, 512 * MiB], MACHINE],
    stalls: `${FS}/app.slice/memory.pressure`,
    missing: [],
  },
  {
    name: "no limit anywhere",
    files: {
      ...PROC,
      "/proc/self/cgroup": "0::/user.slice\n",
      "/proc/self/mountinfo": V2_MOUNT,
      ...groupV2(`${FS}/user.slice`, { current: 300 * MiB }),
    },
    levels: [MACHINE],
    stalls: `${FS}/user.slice/memory.pressure`,
    missing: ["limit"],
  },
  {
    name: "limits of 0, against which nothing can be measured",
    files: {
      ...PROC,
      "/proc/self/cgroup": "0::/\n",
      "/proc/self/mountinfo": V2_MOUNT,
      ...groupV2(FS, { current: 300 * MiB, max: 0, high: 0 }),
    },
    levels: [MACHINE],
    stalls: `${FS}/memory.pressure`,
    missing: ["limit"],
  },
  {
    name: "a kernel without pressure stall information",
    files: {
      "/proc/meminfo": PROC["/proc/meminfo"] as string,
      "/proc/self/cgroup": "0::/\n",
      "/proc/self/mountinfo": V2_MOUNT,
      [`${FS}/cgroup.type`]: "domain\n",
      [`${FS}/memory.current`]: `${300 * MiB}\n`,
      [`${FS}/memory.max`]: `${512 * MiB}\n`,
      [`${FS}/memory.stat`]: "inactive_file 0\n",
    },
    levels: [[FS, 512 * MiB], MACHINE],
    stalls: null,
    missing: ["/proc/pressure/memory", "/proc/pressure/cpu"],
  },
  {
    name: "a sandbox with an empty list of groups",
    files: {
      "/proc/meminfo": PROC["/proc/meminfo"] as string,
      "/proc/self/cgroup": "",
      "/proc/self/mountinfo": mountLine("/", "/", "9p"),
    },
    levels: [MACHINE],
    stalls: null,
    missing: ["cgroup", "/proc/pressure/memory", "/proc/pressure/cpu"],
  },
  { name: "nothing at all", files: {}, levels: [], stalls: null, missing: ["platform"] },
  {
    name: "files that say nothing that is understood",
    files: {
      "/proc/meminfo": "MemTotal: lots\n",
      "/proc/pressure/memory": "\u0000\u0000",
      "/proc/pressure/cpu": "some\n",
      "/proc/self/cgroup": "0::/\n",
      "/proc/self/mountinfo": V2_MOUNT,
      ...groupV2(FS, { current: -1, max: 512 * MiB }),
      [`${FS}/memory.events`]: "oom_kill -1\n",
      [`${FS}/memory.pressure`]: "some avg10=-0.1\n",
      [`${FS}/cpu.pressure`]: "\n",
      [`${FS}/cpu.stat`]: "nr_periods NaN\n",
    },
    levels: [],
    stalls: null,
    missing: ["memory.current", "limit", "/proc/pressure/memory", "/proc/pressure/cpu"],
  },
];

describe("what is seen of", () => {
  it.each(LAYOUTS)("$name", ({ files, levels, stalls, missing: absent }) => {
    const { sample, missing } = watch(files);
    const seen = sample();
    expect(seen.levels.map(({ path, limitBytes }) => [path, limitBytes])).toEqual(levels);
    expect(seen.memory?.path ?? null).toBe(stalls);
    expect(seen.cpu?.path ?? null).toBe(
      stalls
        ?.replace("memory.pressure", "cpu.pressure")
        .replace("pressure/memory", "pressure/cpu") ?? null,
    );
    expect(missing()).toEqual(absent);
    sample();
    expect(missing()).toEqual([]);
  });
});

const BOXED: KernelFiles = {
  ...PROC,
  "/proc/self/cgroup": "0::/box\n",
  "/proc/self/mountinfo": V2_MOUNT,
};

describe("a level", () => {
  it("holds what is used without page cache and what the kernel can drop", () => {
    const { sample } = watch({
      ...BOXED,
      ...groupV2(`${FS}/box`, { current: 400, max: 1000, high: 900, cache: 150, slab: 50 }),
    });
    expect(sample().levels).toEqual([
      {
        source: "cgroup-v2",
        path: `${FS}/box`,
        usedBytes: 200,
        cacheBytes: 200,
        limitBytes: 900,
        highBytes: 900,
        maxBytes: 1000,
      },
      {
        source: "machine",
        path: "/proc/meminfo",
        usedBytes: 4 * GiB,
        cacheBytes: 3 * GiB,
        limitBytes: 16 * GiB,
        highBytes: null,
        maxBytes: 16 * GiB,
      },
    ]);
  });

  it("never holds less than nothing", () => {
    const group = { current: 400, max: 1000, cache: 500 };
    const { sample } = watch({ ...BOXED, ...groupV2(`${FS}/box`, group) });
    expect(sample().levels[0]).toMatchObject({ usedBytes: 0, cacheBytes: 400 });
  });

  it("is read with its cache only from a part of its limit on", () => {
    const path = `${FS}/box`;
    const group = { current: 400, max: 1000, cache: 100 };
    const { sample, tree } = watch({ ...BOXED, ...groupV2(path, group) });
    expect(sample(0.5).levels[0]).toMatchObject({ usedBytes: 400, cacheBytes: 0 });
    expect(sample(0.4).levels[0]).toMatchObject({ usedBytes: 300, cacheBytes: 100 });
    tree.write({ [`${path}/memory.current`]: "500\n" });
    expect(sample(0.5).levels[0]).toMatchObject({ usedBytes: 400, cacheBytes: 100 });
  });

  it("of version 1 takes the cache of the groups below into account", () => {
    const { sample } = watch({
      ...PROC,
      "/proc/self/cgroup": "4:memory:/box\n",
      "/proc/self/mountinfo": mountLine("/", `${FS}/memory`, "cgroup", "rw,memory"),
      ...groupV1(`${FS}/memory/box`, { usage: 400, limit: 1000, cache: 150 }),
    });
    expect(sample().levels[0]).toEqual({
      source: "cgroup-v1",
      path: `${FS}/memory/box`,
      usedBytes: 250,
      cacheBytes: 150,
      limitBytes: 1000,
      highBytes: null,
      maxBytes: 1000,
    });
  });

  it("without its account of cache counts all as used, and says so", () => {
    const group = { current: 400, max: 1000, cache: 100 };
    const { sample, tree, missing } = watch({ ...BOXED, ...groupV2(`${FS}/box`, group) });
    tree.remove(`${FS}/box/memory.stat`);
    expect(sample().levels[0]).toMatchObject({ usedBytes: 400, cacheBytes: 0 });
    expect(missing()).toEqual(["memory.stat"]);
  });

  it("follows a limit that is changed", () => {
    const { sample, tree } = watch({
      ...BOXED,
      ...groupV2(`${FS}/box`, { current: 400, max: 1000 }),
    });
    sample();
    tree.write({ [`${FS}/box/memory.max`]: "2000\n", "/proc/meminfo": meminfo(GiB, 0, 0) });
    expect(sample().levels.map(({ limitBytes }) => limitBytes)).toEqual([2000, GiB]);
    tree.write({ [`${FS}/box/memory.max`]: "max\n" });
    expect(sample().levels.map(({ limitBytes }) => limitBytes)).toEqual([GiB]);
  });
});

describe("events", () => {
  const counts = (high: number, max: number, oom: number, kill: number) =>
    `low 0\nhigh ${high}\nmax ${max}\noom ${oom}\noom_kill ${kill}\noom_group_kill 0\n`;

  it("are those of limits on the way and kills in the own group, not those of groups beside it", () => {
    const { sample } = watch({
      ...BOXED,
      "/proc/self/cgroup": "0::/outer/inner/own\n",
      ...groupV2(`${FS}/outer`, {
        current: 1,
        max: 9000,
        // The hundreds are of groups beside the process's.
        events: counts(103, 108, 105, 102),
        localEvents: counts(1, 2, 3, 0),
      }),
      ...groupV2(`${FS}/outer/inner`, {
        current: 1,
        high: 900,
        events: counts(2, 6, 2, 12),
        localEvents: counts(2, 6, 2, 0),
      }),
      ...groupV2(`${FS}/outer/inner/own`, { current: 1, events: counts(7, 7, 7, 2) }),
    });
    const path = `${FS}/outer/inner/memory.events`;
    expect(sample().events).toEqual({ path, high: 3, max: 8, oom: 5, oomKill: 2 });
  });

  it("are not counted twice by kernels that do not tell them apart", () => {
    const { sample } = watch({
      ...BOXED,
      "/proc/self/cgroup": "0::/outer/inner\n",
      ...groupV2(`${FS}/outer`, { current: 1, max: 9000, events: counts(3, 7, 2, 1) }),
      ...groupV2(`${FS}/outer/inner`, { current: 1, max: 900, events: counts(3, 5, 2, 1) }),
    });
    expect(sample().events).toMatchObject({ high: 3, max: 7, oom: 2, oomKill: 1 });
  });

  it("of version 1 are failures at limits, and kills", () => {
    const { sample } = watch({
      ...PROC,
      "/proc/self/cgroup": "4:memory:/outer/inner\n",
      "/proc/self/mountinfo": mountLine("/", `${FS}/memory`, "cgroup", "rw,memory"),
      ...groupV1(`${FS}/memory/outer`, { usage: 1, limit: 9000, failures: 4, kills: 100 }),
      ...groupV1(`${FS}/memory/outer/inner`, { usage: 1, failures: 0, kills: 1 }),
    });
    const path = `${FS}/memory/outer/inner/memory.oom_control`;
    expect(sample().events).toEqual({ path, high: 0, max: 4, oom: 0, oomKill: 1 });
  });

  it("are not there without a limit", () => {
    const { sample } = watch({ ...BOXED, ...groupV2(`${FS}/box`, { current: 1 }) });
    expect(sample().events).toBeNull();
  });
});

describe("throttling", () => {
  it("is that of the nearest group whose processors are limited", () => {
    const { sample } = watch({
      ...BOXED,
      "/proc/self/cgroup": "0::/outer/inner\n",
      ...groupV2(`${FS}/outer`, { current: 1, cpuMax: "50000 100000\n", throttled: 3 }),
      ...groupV2(`${FS}/outer/inner`, { current: 1 }),
    });
    const path = `${FS}/outer/cpu.stat`;
    expect(sample().throttling).toEqual({
      path,
      periods: 30,
      throttledPeriods: 3,
      throttledUs: 3000,
    });
  });

  it("is told in nanoseconds by version 1, more of them than are counted exactly", () => {
    const { sample } = watch({
      ...PROC,
      "/proc/self/cgroup": "4:cpu,cpuacct:/box\n",
      "/proc/self/mountinfo": mountLine("/", `${FS}/cpu`, "cgroup", "rw,cpu,cpuacct"),
      [`${FS}/cpu/box/cpu.cfs_quota_us`]: "50000\n",
      [`${FS}/cpu/box/cpu.stat`]:
        "nr_periods 9\nnr_throttled 4\nthrottled_time 90071992547409931\n",
    });
    expect(sample().throttling).toMatchObject({ throttledPeriods: 4 });
    expect(sample().throttling?.throttledUs).toBe(90_071_992_547_410);
  });
});

describe("a process", () => {
  const TWO: KernelFiles = {
    ...BOXED,
    "/proc/self/cgroup": "0::/a\n",
    ...groupV2(`${FS}/a`, { current: 1, max: 1000 }),
    ...groupV2(`${FS}/b`, { current: 2, max: 2000 }),
  };
  const paths = ({ levels }: { levels: readonly { path: string }[] }) =>
    levels.map(({ path }) => path);

  it("is followed into another group within seconds", () => {
    const { sample, tree, pass } = watch(TWO);
    sample();
    tree.write({ "/proc/self/cgroup": "0::/b\n" });
    pass(1000);
    expect(paths(sample())).toEqual([`${FS}/a`, "/proc/meminfo"]);
    pass(4000);
    expect(paths(sample())).toEqual([`${FS}/b`, "/proc/meminfo"]);
    expect(sample().memory?.path).toBe(`${FS}/b/memory.pressure`);
  });

  it("whose group is removed is seen under what is above it", () => {
    const { sample, tree, pass } = watch(TWO);
    sample();
    tree.remove(`${FS}/a`);
    pass(5000);
    expect(paths(sample())).toEqual(["/proc/meminfo"]);
    tree.write(groupV2(`${FS}/a`, { current: 1, max: 3000 }));
    pass(5000);
    expect(sample().levels[0]).toMatchObject({ path: `${FS}/a`, limitBytes: 3000 });
  });

  it("is another one where its number is given", () => {
    const { sample } = watch({ ...TWO, "/proc/77/cgroup": "0::/b\n" }, 77);
    expect(paths(sample())).toEqual([`${FS}/b`, "/proc/meminfo"]);
  });

  it("that is not there is seen as one without groups", () => {
    const { sample, sampler } = watch(TWO, 78);
    expect(paths(sample())).toEqual(["/proc/meminfo"]);
    expect(sampler.absences()[0]).toMatchObject({ what: "cgroup" });
  });
});

describe("files", () => {
  it("that are folders, or end in the middle, are as if they were not there", () => {
    const { sample, tree, missing } = watch({
      ...BOXED,
      ...groupV2(`${FS}/box`, { current: 1, max: 1000 }),
    });
    tree.remove(`${FS}/box/memory.pressure`);
    tree.write({ [`${FS}/box/memory.pressure/file`]: "" });
    tree.write({ [`${FS}/box/cpu.pressure`]: "some avg10=0.00 avg60=0.0" });
    expect(sample()).toMatchObject({
      memory: { path: "/proc/pressure/memory" },
      cpu: { path: "/proc/pressure/cpu" },
    });
    expect(missing()).toEqual(["memory.pressure", "cpu.pressure"]);
  });

  it("that come late are found", () => {
    const path = `${FS}/box/memory.pressure`;
    const { sample, tree, pass } = watch({
      ...BOXED,
      ...groupV2(`${FS}/box`, { current: 1, max: 1000 }),
    });
    tree.remove(path);
    expect(sample().memory?.path).toBe("/proc/pressure/memory");
    tree.write({ [path]: stalls(3) });
    pass(5000);
    expect(sample().memory).toMatchObject({ path, some: { avg10: 3 } });
  });

  it("are looked for again after some seconds, and can be read after closing", () => {
    const { sample, sampler, tree, pass } = watch({ ...BOXED });
    expect(sample().memory?.path).toBe("/proc/pressure/memory");
    tree.write(groupV2(`${FS}/box`, { current: 1, max: 1000 }));
    expect(sample().levels).toHaveLength(1);
    pass(5000);
    expect(sample().levels).toHaveLength(2);
    sampler.close();
    expect(sample().levels).toHaveLength(2);
  });

  it("longer than a buffer are read whole", () => {
    const mounts = Array.from({ length: 3000 }, (_, i) => mountLine("/", `/mnt/${i}`, "tmpfs"));
    const { sample } = watch({
      ...BOXED,
      "/proc/self/mountinfo": mounts.join("") + V2_MOUNT,
      ...groupV2(`${FS}/box`, { current: 1, max: 1000 }),
    });
    expect(sample().levels).toHaveLength(2);
  });
});
