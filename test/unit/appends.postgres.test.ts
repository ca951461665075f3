import { expect, it, onTestFinished } from "vitest";
import { createMemoryStorage } from "../../src/storage/memory/memory-storage.js";
import type { CommitRecord, ObjectRecord, Storage } from "../../src/storage/port.js";
import { inLockOrder } from "../../src/storage/postgres/append-call.js";
import { openPostgresStorage } from "../../src/storage/postgres/open.js";
import { WorkflowKeys } from "../../src/storage/postgres/workflow-keys.js";
import { ANY, at, begin, blob, commit, move, mustMove, send } from "../../src/testing/fixtures.js";
import { digest, randomHex } from "../../src/testing/index.js";
import { schemaOf, schemaPlace, withClient } from "../support/postgres.js";

const common = { digest, randomHex, now: Date.now };

/** A store whose pool is too small for two groups at a time: what comes at once goes in one. */
async function open() {
  const url = `${schemaPlace()}&pool_max=2`;
  const limits = { busyTimeoutMs: 5000, graceMs: 60_000 };
  const storage = await openPostgresStorage({ ...common, ...limits, url, create: true });
  onTestFinished(() => storage.close());
  /** How many transactions stored these commits. */
  const transactions = (commits: readonly CommitRecord[]) =>
    withClient(async (client) => {
      const { rows } = await client.query<{ made: number }>(
        `SELECT count(DISTINCT xmin::text)::int AS made FROM ${schemaOf(url)}.commits
          WHERE encode(id, 'hex') = ANY ($1)`,
        [commits.map(({ id }) => id)],
      );
      return rows[0]?.made;
    });
  return { storage, transactions };
}

const refs = ["refs/heads/a", "refs/heads/b", "refs/heads/c", "refs/heads/d"] as const;

/** Lets refs begin at one commit. */
async function firstOn(storage: Storage, names: readonly string[]): Promise<CommitRecord> {
  const first = commit();
  await mustMove(storage, move("refs/heads/first", ANY, [first]));
  for (const ref of names) await mustMove(storage, move(ref, ANY, [], { target: first.id }));
  return first;
}

/** Puts one commit on each ref; some others than its branch is said to be at. */
async function appends(storage: Storage, brings: readonly ObjectRecord[][], losers: number[]) {
  await begin(storage, "w");
  const first = await firstOn(storage, refs);
  const next = brings.map(() => commit({ parents: [first] }));
  for (const i of losers) await mustMove(storage, move(refs[i]!, ANY, [commit()]));
  const answers = await Promise.all(
    brings.map((objects, i) => send(storage, [move(refs[i]!, at(first), [next[i]!])], { objects })),
  );
  return { next, outcomes: answers.map(({ moves }) => moves[0]?.outcome) };
}

it("a group stores what its winners bring, once each, and nothing of its losers", async () => {
  const [shared, won, lost, both] = ["shared", "won", "lost", "both"].map(blob) as [
    ObjectRecord,
    ObjectRecord,
    ObjectRecord,
    ObjectRecord,
  ];
  const brings = [[lost, shared], [shared, both], [won, both, both], [lost]];
  const { storage, transactions } = await open();
  const { next, outcomes } = await appends(storage, brings, [0, 3]);
  expect(outcomes).toEqual(["conflict", "moved", "moved", "conflict"]);
  expect(await transactions(next)).toBe(1);
  const ids = [shared, won, both, lost].map(({ id }) => id);
  const stored = async (from: Storage) =>
    (await from.readObjects("w", ids)).map((object) => object?.id);
  expect(await stored(storage)).toEqual([...ids.slice(0, 3), undefined]);

  const other = await open();
  const all = await appends(other.storage, brings, []);
  expect(all.outcomes).toEqual(["moved", "moved", "moved", "moved"]);
  expect(await other.transactions(all.next)).toBe(1);
  expect(await stored(other.storage)).toEqual(ids);
});

it("names in whatever order land in one group, in the order of locks", async () => {
  const { storage, transactions } = await open();
  await begin(storage, "w");
  const names = ["z", "\u{10400}", "\uff21", "a", "é"].map((name) => `refs/heads/${name}`);
  const first = await firstOn(storage, names);
  const next = names.map(() => commit({ parents: [first] }));
  const moves = names.map((ref, i) => move(ref, at(first), [next[i]!]));
  const answers = await Promise.all(moves.map((one) => send(storage, [one])));
  expect(answers.map(({ moves: [answer] }) => answer)).toMatchObject(
    names.map((name, i) => ({ outcome: "moved", row: { name, id: next[i]!.id, seq: 2 } })),
  );
  expect(await transactions(next)).toBe(1);

  const batches = moves.map((one) => ({ workflow: "w", objects: [], moves: [one], atomic: true }));
  const ordered = inLockOrder(batches, new WorkflowKeys(digest)).map(({ moves: [m] }) => m!.ref);
  expect(ordered).toEqual(
    [...names].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))),
  );
});

for (const together of [1, 3]) {
  it(`a commit that is stored by another ref's move is answered as by any backend, ${together} at once`, async () => {
    const answer = async (storage: Storage) => {
      await begin(storage, "w");
      const first = await firstOn(storage, refs);
      const next = refs.map(() => commit({ parents: [first] }));
      await mustMove(storage, move(refs[3], at(first), [next[0]!]));
      const answers = await Promise.all(
        refs.slice(0, together).map((ref, i) => send(storage, [move(ref, at(first), [next[i]!])])),
      );
      return answers.map(({ moves }) => moves[0]?.outcome);
    };
    const expected = await answer(createMemoryStorage(common));
    expect(await answer((await open()).storage)).toEqual(expected);
    expect(expected).toEqual(["landed", "moved", "moved"].slice(0, together));
  });
}
