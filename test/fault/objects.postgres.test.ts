import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { DEFAULT_LIMITS } from "../../src/core/limits.js";
import type { ObjectRecord, Storage } from "../../src/storage/port.js";
import { openPostgresStorage } from "../../src/storage/postgres/open.js";
import { ABSENT, at, begin, blob, commit, move, mustHold } from "../../src/testing/fixtures.js";
import { digest, randomHex } from "../../src/testing/index.js";
import { schemaOf, schemaPlace, withClient } from "../support/postgres.js";

const options = {
  digest,
  randomHex,
  now: Date.now,
  create: true,
  busyTimeoutMs: 30_000,
  graceMs: DEFAULT_LIMITS.graceMs,
};

async function open(url: string): Promise<Storage> {
  const storage = await openPostgresStorage({ ...options, url });
  onTestFinished(() => storage.close());
  return storage;
}

const objectsNamed = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, i) => blob(`${prefix} ${i}`));

/** Writes commits one on top of the other, each with all objects, in their order or backwards. */
async function writeLine(
  storage: Storage,
  ref: string,
  rounds: readonly (readonly ObjectRecord[])[],
  backwards: boolean,
): Promise<void> {
  let head = commit();
  for (const [n, objects] of rounds.entries()) {
    const next = n === 0 ? head : commit({ parents: [head] });
    const answer = await storage.write({
      workflow: "w",
      objects: backwards ? [...objects].reverse() : objects,
      moves: [move(ref, n === 0 ? ABSENT : at(head), [next])],
      atomic: true,
    });
    expect(answer.moves[0]?.outcome).toBe("moved");
    head = next;
  }
}

describe("objects of one batch", () => {
  it("may be 70,000, more than a statement can have parameters", async () => {
    const storage = await open(schemaPlace());
    await begin(storage, "w");
    const objects = objectsNamed("object", 70_000);
    await writeLine(storage, "refs/heads/many", [objects], false);
    await mustHold(storage, objects);
    expect(await storage.usage("w")).toMatchObject({ commits: 1, objects: 70_000 });
  });
});

describe("writers of the same objects in opposite orders", () => {
  it("lose none, and none meets a deadlock", async () => {
    const url = schemaPlace();
    const [one, two, three] = [await open(url), await open(url), await open(url)];
    await begin(one, "w");
    const deadlocks = async () => {
      const { rows } = await withClient((client) =>
        client.query<{ deadlocks: string }>(
          "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()",
        ),
      );
      return rows[0]?.deadlocks;
    };
    const before = await deadlocks();
    const rounds = Array.from({ length: 20 }, (_, n) => objectsNamed(`round ${n}`, 500));
    // Few objects go by another function.
    const small = Array.from({ length: 200 }, (_, n) => objectsNamed(`small ${n}`, 8));
    await Promise.all([
      writeLine(one, "refs/heads/one", rounds, false),
      writeLine(two, "refs/heads/two", rounds, true),
      // New rows each time, met in any order.
      writeLine(three, "refs/heads/three", [...rounds].reverse(), true),
      writeLine(one, "refs/heads/four", small, false),
      writeLine(two, "refs/heads/five", small, true),
    ]);
    await mustHold(one, [...rounds, ...small].flat());
    expect(await one.usage("w")).toMatchObject({ objects: 20 * 500 + 200 * 8 });
    // A session tells what it met when it ends, if not before.
    for (const storage of [one, two, three]) await storage.close();
    await sleep(200);
    expect(await deadlocks()).toBe(before);
    await withClient(async (client) => {
      const { rows } = await client.query(
        `SELECT count(*)::int AS n FROM ${schemaOf(url)}.commits`,
      );
      expect(rows).toEqual([{ n: 3 * 20 + 2 * 200 }]);
    });
  });
});
