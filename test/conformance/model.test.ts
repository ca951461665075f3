import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ObjectId } from "../../src/core/ids.js";
import type {
  CommitRecord,
  Expectation,
  ObjectRecord,
  RefMove,
  Storage,
  WriteBatch,
} from "../../src/storage/port.js";
import { blob, commit, move, unknownId, workflow } from "../../src/testing/fixtures.js";
import { memoryTarget, sqliteTarget } from "./targets.js";

const REFS = ["refs/heads/a", "refs/heads/b", "refs/heads/B", "refs/tags/t"];
const KEYS = ["a", "a/b", "a%", "\u{1f600}", "\uffff"];
const WORKFLOWS = ["w", "v"];

/** What has been made so far, so that commands can name it by number. */
interface World {
  readonly commits: CommitRecord[];
  readonly objects: ObjectRecord[];
  readonly batches: WriteBatch[];
}

/** The two stores under comparison: what one answers the other must. */
class Pair {
  constructor(
    readonly model: Storage,
    readonly real: Storage,
    readonly world: World,
  ) {}

  async same<T>(ask: (storage: Storage) => Promise<T>): Promise<T> {
    const expected = plain(await ask(this.model));
    expect(plain(await ask(this.real))).toEqual(expected);
    return expected as T;
  }

  /** Sends batches at once; both stores serve them in the order given. */
  async write(batches: readonly WriteBatch[]): Promise<void> {
    this.world.batches.push(...batches);
    await this.same((s) => Promise.all(batches.map((batch) => s.write(batch))));
  }

  /** Compares everything that can be read. */
  async compareAll(): Promise<void> {
    await this.same((s) => s.readWorkflows({ limit: 100 }));
    for (const w of WORKFLOWS) {
      await this.same((s) => s.readRefs(w, { prefix: "", deleted: true }));
      await this.same((s) => s.readRefs(w, { prefix: "refs/heads/" }));
      for (const ref of REFS) await this.same((s) => s.readReflog(w, ref, { limit: 1000 }));
      await this.same((s) => s.scanObjects(w, null, 1000));
      await this.same((s) => s.scanCommits(w, null, 1000));
      for (const prefix of ["", ...KEYS]) await this.same((s) => s.readPending(w, [prefix]));
      await this.same((s) => s.usage(w));
    }
    expect(await this.real.checkStructure()).toEqual([]);
  }
}

/** Bodies as hex, so that a Buffer and a Uint8Array of the same bytes compare equal. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString("hex");
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, plain(v)]));
}

const pick = <T>(from: readonly T[], n: number): T | undefined => from[n % (from.length || 1)];

type Model = Pair;
type Command = fc.AsyncCommand<Model, Model>;

function command(name: string, run: (pair: Pair) => Promise<void>): Command {
  return { check: () => true, run: (pair) => run(pair), toString: () => name };
}

interface MoveSeed {
  ref: number;
  expect: "any" | "absent" | "head" | "wrong";
  target: "append" | "chain" | "merge" | "old" | "delete" | "root" | "unknown" | "orphan" | "again";
  n: number;
  maxStep: number;
}

const moveSeed = fc.record<MoveSeed>({
  ref: fc.nat(REFS.length - 1),
  expect: fc.constantFrom("any", "absent", "head", "head", "head", "wrong"),
  target: fc.constantFrom(
    ...(["append", "append", "append", "chain", "merge", "old", "delete"] as const),
    ...(["root", "unknown", "orphan", "again"] as const),
  ),
  n: fc.nat(1000),
  maxStep: fc.nat(20),
});

const batchSeed = fc.record({
  workflow: fc.nat(1),
  moves: fc.uniqueArray(moveSeed, { selector: (m) => m.ref, maxLength: 3 }),
  objects: fc.array(fc.nat(30), { maxLength: 4 }),
  atomic: fc.boolean(),
  pending: fc.array(
    fc.record({
      key: fc.constantFrom(...KEYS),
      index: fc.integer({ min: -2, max: 2 }),
      body: fc.uint8Array({ maxLength: 3 }),
    }),
    { maxLength: 3 },
  ),
  dropPending: fc.array(fc.constantFrom(...KEYS), { maxLength: 1 }),
});

async function buildMove(pair: Pair, w: string, seed: MoveSeed): Promise<RefMove> {
  const { world } = pair;
  const ref = REFS[seed.ref]!;
  const [row] = await pair.model.readRefs(w, { names: [ref] });
  const head = world.commits.find((c) => c.id === row?.id);
  const other = pick(world.commits, seed.n);
  const make = (...parents: (CommitRecord | undefined)[]) => {
    const made = commit({
      parents: parents.filter((p) => p !== undefined),
      externalId: seed.n % 5 === 0 ? `x${seed.n % 3}` : null,
      inline: seed.n % 3 === 0 ? [blob(`inline ${seed.n}`)] : [],
    });
    world.commits.push(made);
    return made;
  };
  const commits: CommitRecord[] = [];
  let target: ObjectId | null | undefined;
  if (seed.target === "append") commits.push(make(head));
  else if (seed.target === "root") commits.push(make());
  else if (seed.target === "merge") commits.push(make(head, other));
  else if (seed.target === "chain") {
    commits.push(make(head));
    commits.push(make(commits[0], other));
  } else if (seed.target === "orphan") {
    // Neither stored nor sent.
    commits.push(commit({ parents: [commit()] }));
  } else if (seed.target === "again" && other !== undefined) commits.push(other);
  else if (seed.target === "old") target = other?.id ?? unknownId();
  else if (seed.target === "unknown") target = unknownId();
  const expectation: Expectation =
    seed.expect === "any" || seed.expect === "absent"
      ? { kind: seed.expect }
      : seed.expect === "head" && row?.id
        ? { kind: "id", id: row.id }
        : seed.expect === "head"
          ? { kind: "absent" }
          : { kind: "id", id: other?.id ?? unknownId() };
  return move(ref, expectation, commits, {
    maxStep: seed.maxStep,
    log: {
      actor: seed.n % 2 ? "ada" : "someone else",
      reason: seed.n % 3 ? "a message" : "commit: a message",
      time: seed.n,
      trace: seed.n % 4 ? "" : "00-trace",
    },
    ...(target === undefined ? {} : { target }),
  });
}

const writes = fc.array(batchSeed, { minLength: 1, maxLength: 4 }).map((seeds) =>
  command(`write ${JSON.stringify(seeds)}`, async (pair) => {
    const batches: WriteBatch[] = [];
    for (const { workflow: w, moves, objects, ...rest } of seeds) {
      const name = WORKFLOWS[w]!;
      const built: RefMove[] = [];
      for (const seed of moves) built.push(await buildMove(pair, name, seed));
      const sent = objects.map((n) => blob(`object ${n}`));
      pair.world.objects.push(...sent);
      batches.push({ workflow: name, moves: built, objects: sent, ...rest });
    }
    await pair.write(batches);
  }),
);

const create = fc.nat(1).map((n) =>
  command(`create ${WORKFLOWS[n]}`, async (pair) => {
    const id = WORKFLOWS[n]!;
    await pair.write([
      { workflow: id, create: workflow(id), objects: [], moves: [], atomic: true },
    ]);
  }),
);

const resend = fc.nat(1000).map((n) =>
  command(`resend ${n}`, async (pair) => {
    const batch = pick(pair.world.batches, n);
    if (batch !== undefined) await pair.write([batch]);
  }),
);

const read = fc.tuple(fc.nat(1), fc.nat(1000), fc.nat(30)).map(([w, n, limit]) =>
  command(`read ${w} ${n} ${limit}`, async (pair) => {
    const name = WORKFLOWS[w]!;
    const { commits, objects } = pair.world;
    const some = [pick(commits, n), pick(commits, n * 7 + 1)].filter((c) => c !== undefined);
    const ids = [...some.map((c) => c.id), unknownId()];
    await pair.same((s) => s.readCommits(name, ids));
    await pair.same((s) => s.readGraph(name, ids, limit));
    await pair.same((s) => s.readObjects(name, [...ids, ...objects.map((o) => o.id)]));
    await pair.same((s) => s.findIds(name, ids[0]!.slice(0, n % 4), limit));
    await pair.same((s) => s.findExternal(name, `x${n % 3}`));
    const ref = REFS[n % REFS.length]!;
    await pair.same((s) => s.readReflog(name, ref, { limit, fromSeq: n % 12 }));
    await pair.same((s) => s.scanCommits(name, null, limit));
  }),
);

describe("SQLite answers as the model does", () => {
  it("over random batches sent together, resends and reads", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.commands([writes, writes, create, resend, read], { maxCommands: 40 }),
        async (commands) => {
          const model = await memoryTarget.open();
          const real = await sqliteTarget.open();
          try {
            await fc.asyncModelRun(() => {
              const world = { commits: [], objects: [], batches: [] };
              const pair = new Pair(model.storage, real.storage, world);
              return { model: pair, real: pair };
            }, [
              command("create w", async (pair) => {
                const create = workflow("w");
                await pair.write([{ workflow: "w", create, objects: [], moves: [], atomic: true }]);
              }),
              ...commands,
              command("compare", (pair) => pair.compareAll()),
            ]);
          } finally {
            await model.destroy();
            await real.destroy();
          }
        },
      ),
      { numRuns: 120 },
    );
  });
});
