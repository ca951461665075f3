import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, rmdirSync, writeFileSync } from "node:fs";
import { totalmem } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { Sampler } from "../../src/pressure/sampler.js";

const MiB = 2 ** 20;

function makeSampler(pid: number | "self" = "self"): Sampler {
  const sampler = new Sampler({ pid, now: () => 0 });
  onTestFinished(() => sampler.close());
  return sampler;
}

/** Every number in a value, by its path. */
function* numbersIn(value: unknown, path = ""): Generator<[string, number]> {
  if (typeof value === "number") yield [path, value];
  if (typeof value !== "object" || value === null) return;
  for (const [key, member] of Object.entries(value)) yield* numbersIn(member, `${path}/${key}`);
}

describe("of this machine", () => {
  it("what is seen is plausible, and the same files are read again", () => {
    const sampler = makeSampler();
    for (let i = 0; i < 3; i++) {
      const sample = sampler.sample();
      for (const [path, number] of numbersIn(sample)) {
        expect(Number.isFinite(number) && number >= 0, `${path} is ${number}`).toBe(true);
      }
      for (const level of sample.levels) {
        expect(level.limitBytes).toBeGreaterThan(0);
        // What is charged passes a limit for a moment at most.
        expect(level.usedBytes).toBeLessThanOrEqual(2 * level.limitBytes);
      }
    }
    for (const { what, message } of sampler.absences()) {
      expect(what).not.toBe("");
      expect(message).toMatch(/^[^\n]+$/);
    }
    expect(sampler.absences()).toEqual([]);
  });

  it.runIf(existsSync("/proc/meminfo"))("the memory is what Node says as well", () => {
    const machine = makeSampler().sample().levels.at(-1);
    expect(machine).toMatchObject({ source: "machine", path: "/proc/meminfo" });
    expect(machine?.limitBytes).toBe(totalmem());
  });

  it.runIf(existsSync("/proc/self/fd"))("no file stays open after closing", () => {
    const open = () => readdirSync("/proc/self/fd").length;
    const before = open();
    for (let i = 0; i < 100; i++) {
      const sampler = new Sampler();
      sampler.sample();
      sampler.close();
    }
    // Others may have opened some meanwhile.
    expect(open()).toBeLessThan(before + 100);
  });
});

const V1 = "/sys/fs/cgroup/memory";

/** A group of version 1 on this machine, where one may be made; gone when the test is over. */
function makeGroup(): string | null {
  const path = join(V1, `agstate-test-${process.pid}`);
  if (!existsSync(join(V1, "memory.limit_in_bytes"))) return null;
  try {
    mkdirSync(path);
  } catch {
    return null;
  }
  return path;
}

/** A process that does nothing. */
async function startIdle(): Promise<ChildProcess> {
  const child = spawn(process.execPath, ["-e", "process.stdin.resume(); console.log()"], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  await once(child.stdout as NonNullable<typeof child.stdout>, "data");
  return child;
}

describe("of a real group of version 1", () => {
  it("the limit is seen of a process in it, and no longer when the process is moved and the group removed", async ({
    skip,
  }) => {
    const group = makeGroup();
    if (group === null) return skip("no group of version 1 can be made here");
    const child = await startIdle();
    const moveTo = (directory: string) =>
      writeFileSync(join(directory, "cgroup.procs"), `${child.pid}`);
    try {
      const usual = makeSampler(child.pid).sample().levels;
      const isTheGroups = ({ path }: { path: string }) => path === group;
      expect(usual.filter(isTheGroups)).toEqual([]);

      writeFileSync(join(group, "memory.limit_in_bytes"), `${256 * MiB}`);
      moveTo(group);
      const sampler = makeSampler(child.pid);
      const sample = sampler.sample();
      expect(sample.levels[0]).toMatchObject({
        source: "cgroup-v1",
        path: group,
        limitBytes: 256 * MiB,
        maxBytes: 256 * MiB,
      });
      expect(sample.events).toMatchObject({ oomKill: 0 });
      expect(sampler.absences().map(({ what }) => what)).not.toContain("limit");

      moveTo(V1);
      rmdirSync(group);
      // The sampler's clock stands still: it is by the files that it knows.
      expect(sampler.sample().levels.filter(isTheGroups)).toEqual([]);
    } finally {
      const ended = once(child, "close");
      child.kill("SIGKILL");
      await ended;
      if (existsSync(group)) rmdirSync(group);
    }
  });
});
