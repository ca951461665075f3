import { spawn } from "node:child_process";
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

/** Groups of version 1 with limits on this machine, where they may be made; gone when the test is over. */
function makeGroups(...limits: number[]): string[] | null {
  if (!existsSync(join(V1, "memory.limit_in_bytes"))) return null;
  const groups: string[] = [];
  onTestFinished(() => {
    for (const group of groups) if (existsSync(group)) rmdirSync(group);
  });
  for (const limit of limits) {
    const group = join(V1, `agstate-test-${process.pid}-${groups.length}`);
    try {
      mkdirSync(group);
    } catch {
      return null;
    }
    groups.push(group);
    writeFileSync(join(group, "memory.limit_in_bytes"), `${limit}`);
  }
  return groups;
}

/** A process that does nothing, and ends before the groups are removed. */
async function startIdle(): Promise<number> {
  const child = spawn(process.execPath, ["-e", "process.stdin.resume(); console.log()"], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const ended = once(child, "close");
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  await once(child.stdout, "data");
  return child.pid as number;
}

describe("of real groups of version 1", () => {
  it("the limit is seen of a process, and at once of the group that it is moved to", async ({
    skip,
  }) => {
    const groups = makeGroups(256 * MiB, 128 * MiB);
    if (groups === null) return skip("no group of version 1 can be made here");
    const [first, second] = groups as [string, string];
    const pid = await startIdle();
    const moveTo = (group: string) => writeFileSync(join(group, "cgroup.procs"), `${pid}`);
    const usual = makeSampler(pid).sample().levels;
    expect(usual.map(({ path }) => path)).not.toContain(first);

    moveTo(first);
    const sampler = makeSampler(pid);
    const sample = sampler.sample();
    expect(sample.levels[0]).toMatchObject({
      source: "cgroup-v1",
      path: first,
      limitBytes: 256 * MiB,
      maxBytes: 256 * MiB,
    });
    expect(sample.events).toMatchObject({ oomKill: 0 });
    expect(sampler.absences().map(({ what }) => what)).not.toContain("limit");

    moveTo(second);
    rmdirSync(first);
    mkdirSync(first);
    writeFileSync(join(first, "memory.limit_in_bytes"), `${64 * MiB}`);
    moveTo(first);
    expect(sampler.sample().levels[0]).toMatchObject({ path: first, limitBytes: 64 * MiB });

    moveTo(second);
    rmdirSync(first);
    // The sampler's clock stands still: it is by the files that it knows.
    expect(sampler.sample().levels[0]).toMatchObject({ path: second, limitBytes: 128 * MiB });
  });
});
