import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { Sampler } from "../../src/pressure/sampler.js";
import { Shared } from "../../src/pressure/shared.js";
import { DEFAULT_THRESHOLDS } from "../../src/pressure/thresholds.js";
import { Watcher, type WatcherMessage } from "../../src/pressure/watcher.js";
import {
  groupV1,
  groupV2,
  type KernelFiles,
  KernelTree,
  mountLine,
  PROC,
  V2_MOUNT,
} from "../support/kernel-files.js";
import { makeStore } from "../support/stores.js";

const MiB = 2 ** 20;
const FS = "/sys/fs/cgroup";
const V1_MOUNT = mountLine("/", `${FS}/memory`, "cgroup", "rw,memory");
const inGroup = (line: string, mount: string): KernelFiles => ({
  "/proc/self/cgroup": `${line}\n`,
  "/proc/self/mountinfo": mount,
});

/** Has a watch look at a machine's files again and again, with a reserve, and gives what it told. */
function watched(files: KernelFiles): { messages: WatcherMessage[]; shared: Shared } {
  const { root } = new KernelTree(files);
  let at = 0;
  const sampler = new Sampler({ root, now: () => at });
  const messages: WatcherMessage[] = [];
  const shared = new Shared();
  const options = { thresholds: DEFAULT_THRESHOLDS, reserveBytes: 1024 };
  const watcher = new Watcher(options, sampler, shared, (message) => messages.push(message));
  for (; at < 60_000; at += 200) watcher.look();
  sampler.close();
  return { messages, shared };
}

describe("limits wherever they are (PRS-02)", () => {
  const nested = inGroup("0::/a/b/c", V2_MOUNT);
  const limits = (own: number | "max", parent: number | "max", outer: number | "max") => ({
    ...PROC,
    ...nested,
    ...groupV2(`${FS}/a/b/c`, { current: 400 * MiB, max: own }),
    ...groupV2(`${FS}/a/b`, { current: 480 * MiB, max: parent }),
    ...groupV2(`${FS}/a`, { current: 500 * MiB, max: outer }),
  });

  it.each([
    ["on a parent alone", limits("max", 512 * MiB, "max"), `${FS}/a/b`, 480 / 512],
    [
      "on all, the outermost the tightest",
      limits(900 * MiB, 800 * MiB, 520 * MiB),
      `${FS}/a`,
      500 / 520,
    ],
    ["on the own alone", limits(440 * MiB, "max", "max"), `${FS}/a/b/c`, 400 / 440],
    [
      "of version 1",
      {
        ...PROC,
        ...inGroup("4:memory:/box", V1_MOUNT),
        ...groupV1(`${FS}/memory/box`, { usage: 500 * MiB, limit: 512 * MiB, cache: 30 * MiB }),
      },
      `${FS}/memory/box`,
      470 / 512,
    ],
  ])("are met with the usage that belongs to them: %s", (_, files, path, share) => {
    const { messages } = watched(files);
    const risen = messages.filter(({ kind }) => kind === "risen");
    expect(risen).toHaveLength(1);
    const [first] = risen as Extract<WatcherMessage, { kind: "risen" }>[];
    expect(first?.reasons[0]).toMatchObject({ kind: "usage", path });
    expect(first?.reasons[0]?.value).toBeCloseTo(share, 5);
  });

  it.each([
    ["nothing that can be read, as on macOS", {}, ["platform"]],
    ["no control group", { ...PROC, "/proc/self/cgroup": "" }, ["cgroup", "memory.pressure"]],
    [
      "no memory controller",
      { ...PROC, ...inGroup("0::/box", V2_MOUNT), [`${FS}/box/cgroup.type`]: "domain\n" },
      ["limit", "memory.pressure", "cpu.pressure"],
    ],
    [
      "no limit, and no stalls that are told",
      {
        "/proc/meminfo": PROC["/proc/meminfo"] as string,
        ...inGroup("4:memory:/box", V1_MOUNT),
        ...groupV1(`${FS}/memory/box`, { usage: 500 * MiB }),
      },
      ["memory controller", "limit", "/proc/pressure/memory", "/proc/pressure/cpu"],
    ],
  ])("are said to be missing, each once, and nothing breaks: %s", (_, files, missing) => {
    const { messages, shared } = watched(files);
    const told = messages.map((message) =>
      message.kind === "absent" ? message.what : message.kind,
    );
    expect(told).toEqual(missing);
    expect(shared.level).toBe("none");
    for (const message of messages)
      if (message.kind === "absent") expect(message.message).not.toMatch(/NaN|undefined|null/);
  });
});

describe("what is acknowledged (PRS-03)", () => {
  const child = fileURLToPath(new URL("../fault/children/checkpoint-and-die.mjs", import.meta.url));

  it.each(["flush", "checkpoint", "pressure"])(
    "is in the store when the process is killed right after: %s",
    async (by) => {
      const { store, url, another } = await makeStore("sqlite");
      await store.createWorkflow("w", { state: {} });
      const agent = spawn(process.execPath, ["--max-old-space-size=256", child, url, by], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      const [said, [, signal]] = await Promise.all([text(agent.stdout), once(agent, "exit")]);
      expect(signal).toBe("SIGKILL");
      const workflow = await (await another()).workflow("w");
      expect(await workflow.resolve(`a/${by}`)).toBe(said.trim());
      expect(await workflow.stateAt(`a/${by}`)).toEqual({ n: 20 });
      expect((await workflow.fsck()).problems).toEqual([]);
    },
  );
});
