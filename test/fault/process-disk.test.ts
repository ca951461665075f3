import { randomBytes } from "node:crypto";
import {
  chmodSync,
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  rmSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type AgstateError, type Branch, isAgstateError, openStore } from "../../src/index.js";
import { mountSmallDisk, type SmallDisk } from "../support/small-disk.js";
import { expectSound, storePlace, withStore, withWorkflow } from "../support/sqlite-store.js";

const DISK_BYTES = 12 * 1024 * 1024;
/** What is left for the store beside the ballast. */
const ROOM_BYTES = 2 * 1024 * 1024;
const PAYLOAD_BYTES = 20_000;
const COMMITS_MAX = 1_000;

function smallDiskOr(skip: (reason: string) => never): SmallDisk {
  const disk = mountSmallDisk(DISK_BYTES);
  if (typeof disk !== "string") return disk;
  console.log(`skipped: ${disk}`);
  return skip(disk);
}

/** Writes a file until it has that size or the disk is full. */
function fill(path: string, bytes: number): void {
  const fd = openSync(path, "w");
  try {
    const block = Buffer.alloc(4096, 1);
    for (let written = 0; written < bytes; written += block.length) writeSync(fd, block);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
  } finally {
    closeSync(fd);
  }
}

function commitSome(branch: Branch, n: number) {
  return branch.commit({ state: { n, payload: randomBytes(PAYLOAD_BYTES).toString("hex") } });
}

/** The typed error that a piece of work ends with. */
async function errorOf(work: () => Promise<unknown>): Promise<AgstateError> {
  try {
    await work();
  } catch (error) {
    if (isAgstateError(error)) return error;
    throw error;
  }
  throw new Error("there was no error");
}

describe("a full disk", () => {
  it("refuses commits with STORE_FULL, keeps the old head, and is no matter when there is room again", async ({
    skip,
  }) => {
    const disk = smallDiskOr(skip);
    const path = join(disk.path, "store");
    const ballast = join(disk.path, "ballast");
    fill(ballast, DISK_BYTES - ROOM_BYTES);

    const [store, other] = [await openStore(`sqlite:${path}`), await openStore(`sqlite:${path}`)];
    const workflow = await store.createWorkflow("full");
    const branch = await workflow.branch({ agent: "writer", branch: "main" });
    const acknowledged: string[] = [];
    const error = await errorOf(async () => {
      while (acknowledged.length < COMMITS_MAX) {
        acknowledged.push((await commitSome(branch, acknowledged.length + 1)).id);
      }
    });
    console.log(`${acknowledged.length} commits until the disk was full`);
    expect(error.code).toBe("STORE_FULL");
    expect(error.message).toContain(path);
    expect(acknowledged.length).toBeGreaterThan(10);

    // Reading goes on, and shows the last commit that was acknowledged.
    const head = acknowledged.at(-1)!;
    const lastState = { n: acknowledged.length };
    expect(branch.head.id).toBe(head);
    expect((await branch.refresh()).id).toBe(head);
    const seen = await (await other.workflow("full")).branch("agents/writer/main");
    expect(seen.head.id).toBe(head);
    expect(await seen.state("/n")).toBe(lastState.n);
    expect((await workflow.fsck()).problems).toEqual([]);
    // So it is with every further try, from any connection.
    for (const handle of [branch, seen]) {
      expect((await errorOf(() => commitSome(handle, 0))).code).toBe("STORE_FULL");
    }

    rmSync(ballast);
    for (const handle of [branch, seen]) {
      await handle.refresh();
      acknowledged.push((await commitSome(handle, acknowledged.length + 1)).id);
    }
    await store.close();
    await other.close();
    await withWorkflow(path, "full", async (again, reopened) => {
      const history: string[] = [];
      for await (const { id } of again.log({ revisions: ["writer/main"] })) history.push(id);
      expect(history.reverse().slice(1)).toEqual(acknowledged);
      expect(await again.stateAt("writer/main:/n")).toBe(acknowledged.length);
      await expectSound(again, reopened);
    });
  });

  it("refuses to make or open a store with STORE_FULL, and leaves the one that is there as it was", async ({
    skip,
  }) => {
    const disk = smallDiskOr(skip);
    const old = join(disk.path, "old");
    const head = await withStore(old, async (store) => {
      const workflow = await store.createWorkflow("full", { state: { n: 1 } });
      return workflow.resolve("canonical");
    });
    const ballast = join(disk.path, "ballast");
    fill(ballast, DISK_BYTES);
    const fresh = join(disk.path, "fresh");
    for (const path of [old, fresh]) {
      const error = await errorOf(() => openStore(`sqlite:${path}`));
      expect(error.code, error.message).toBe("STORE_FULL");
      expect(error.message).toContain(path);
    }
    rmSync(ballast);
    await withWorkflow(old, "full", async (workflow, store) => {
      expect(await workflow.resolve("canonical")).toBe(head);
      await expectSound(workflow, store);
    });
    await withStore(fresh, async (store) => {
      await expectSound(await store.createWorkflow("full"), store);
    });
  });
});

/** Makes a directory that cannot be written to, for root too; answers how to undo it. */
function makeReadOnly(skip: (reason: string) => never): {
  path: string;
  set: (readOnly: boolean) => void;
} {
  if (process.getuid?.() === 0) {
    const disk = smallDiskOr(skip);
    return { path: disk.path, set: disk.setReadOnly };
  }
  const path = storePlace();
  const set = (readOnly: boolean) => {
    for (const each of [path, join(path, "store")]) {
      if (existsSync(each)) chmodSync(each, readOnly ? 0o555 : 0o755);
    }
  };
  return { path, set };
}

describe("a read-only directory", () => {
  it("refuses to open or make a store with STORE_READONLY and changes nothing", async ({
    skip,
  }) => {
    const { path: folder, set } = makeReadOnly(skip);
    const path = join(folder, "store");
    const head = await withStore(path, async (store) => {
      const workflow = await store.createWorkflow("kept", { state: { n: 1 } });
      return (await commitSome(await workflow.canonical(), 2)).id;
    });
    const files = readdirSync(path);
    set(true);
    try {
      for (const create of [true, false]) {
        const error = await errorOf(() => openStore(`sqlite:${path}`, { create }));
        expect(error.code, error.message).toBe("STORE_READONLY");
        expect(error.message).toContain(path);
      }
      const error = await errorOf(() => openStore(`sqlite:${join(folder, "fresh")}`));
      expect(error.code, error.message).toBe("STORE_READONLY");
      expect(readdirSync(folder)).toEqual(["store"]);
      expect(readdirSync(path)).toEqual(files);
    } finally {
      set(false);
    }
    await withWorkflow(path, "kept", async (workflow, store) => {
      expect(await workflow.resolve("canonical")).toBe(head);
      await commitSome(await workflow.canonical(), 3);
      expect(await workflow.stateAt("canonical:/n")).toBe(3);
      await expectSound(workflow, store);
    });
  });
});
