import { describe, expect, it } from "vitest";
import { openStore, type Storage } from "../../src/index.js";
import { PayloadStore } from "../../src/residency/router/payloads.js";
import { randomHex } from "../../src/testing/index.js";
import { agstateError } from "../support/stores.js";

const OF = { workflow: "trip", home: "eu" };
const HASHES = ["a", "b", "c"].map((digit) => digit.repeat(64)) as [string, string, string];

/** The storage of a store of region us, and a clock that the test sets. */
async function makeUs() {
  let storage: Storage | undefined;
  const store = await openStore("memory:", {
    region: "us",
    wrap: (inner) => {
      storage = inner;
      return inner;
    },
  });
  const clock = { ms: 1000 };
  const source = { now: () => clock.ms, randomHex };
  const payloads = () => new PayloadStore(storage as Storage, "us", source);
  return { store, storage: storage as Storage, clock, payloads };
}

const payload = (hash: string, value: unknown) => ({
  region: "us",
  hash,
  text: JSON.stringify(value),
});

describe("payloads of another region", () => {
  it("are written once, in a workflow that is made for them, and read back", async () => {
    const { storage, payloads } = await makeUs();
    await payloads().put(OF, [payload(HASHES[0], { name: "Ada" }), payload(HASHES[1], null)]);
    await payloads().put(OF, [payload(HASHES[0], { name: "Ada" })]);
    const found = await payloads().read("trip", [...HASHES]);
    expect([...found]).toEqual([
      [HASHES[0], { value: { name: "Ada" } }],
      [HASHES[1], { value: null }],
    ]);
    expect((await storage.usage("trip")).pending).toBe(2);
    expect(await storage.readRefs("trip", { prefix: "refs/" })).toEqual([]);
  });

  it("are made beside others who make the same workflow", async () => {
    const { payloads } = await makeUs();
    await Promise.all(HASHES.map((hash) => payloads().put(OF, [payload(hash, hash)])));
    expect((await payloads().read("trip", [...HASHES])).size).toBe(3);
  });

  it("are not put into a workflow of somebody else", async () => {
    const { store, payloads } = await makeUs();
    await store.createWorkflow("trip");
    await expect(payloads().put(OF, [payload(HASHES[0], 1)])).rejects.toEqual(
      agstateError("REGION_REFUSED"),
    );
    await payloads().put({ workflow: "other", home: "ap" }, [payload(HASHES[0], 1)]);
    await expect(
      payloads().put({ workflow: "other", home: "eu" }, [payload(HASHES[0], 1)]),
    ).rejects.toEqual(agstateError("REGION_REFUSED"));
  });

  it("are swept when no pointer stands for them and they are old, and stay when one is written again", async () => {
    const { clock, payloads } = await makeUs();
    await payloads().put(
      OF,
      HASHES.map((hash) => payload(hash, hash)),
    );
    clock.ms = 5000;
    await payloads().put(OF, [payload(HASHES[2], HASHES[2])]);
    const wanted = new Set([HASHES[0]]);
    expect(await payloads().sweep(OF, 1000, wanted)).toBe(0);
    expect(await payloads().sweep(OF, 5000, wanted)).toBe(1);
    expect([...(await payloads().read("trip", [...HASHES])).keys()]).toEqual([
      HASHES[0],
      HASHES[2],
    ]);
    expect(await payloads().sweep({ workflow: "none", home: "eu" }, 5000, wanted)).toBe(0);
  });

  it("outlast a sweep, in whatever order its calls and a writer's come", async () => {
    // A writer makes three calls, a sweep six: every way in which they can lie.
    for (const order of ways(3, 6)) {
      const { storage, clock, payloads } = await makeUs();
      await payloads().put(OF, [payload(HASHES[0], 1)]);
      clock.ms = 100_000;
      const turns = inOrder(storage, order);
      const source = { now: () => clock.ms, randomHex };
      const writer = new PayloadStore(turns.of(0), "us", source);
      const sweeper = new PayloadStore(turns.of(1), "us", source);
      await Promise.all([
        writer.put(OF, [payload(HASHES[0], 1)]).finally(() => turns.over(0)),
        sweeper.sweep(OF, 50_000, new Set()).finally(() => turns.over(1)),
      ]);
      const left = [...(await payloads().read("trip", [HASHES[0]])).keys()];
      expect({ order, left }).toEqual({ order, left: [HASHES[0]] });
    }
  });

  it("are written again after what a sweep that was killed has marked", async () => {
    const { storage, clock, payloads } = await makeUs();
    await payloads().put(OF, [payload(HASHES[0], 1)]);
    clock.ms = 100_000;
    let calls = 0;
    const dying = new Proxy(storage, {
      get: (target, key) => {
        const member = Reflect.get(target, key);
        if (key !== "write") return member;
        return (...args: unknown[]) => {
          if (calls++ > 0) throw new Error("killed");
          return (member as (...given: unknown[]) => unknown).apply(target, args);
        };
      },
    });
    const sweeper = new PayloadStore(dying, "us", { now: () => clock.ms, randomHex });
    await expect(sweeper.sweep(OF, 50_000, new Set())).rejects.toThrow("killed");
    clock.ms += 11 * 60_000;
    await payloads().put(OF, [payload(HASHES[0], 1)]);
    expect((await payloads().read("trip", [HASHES[0]])).size).toBe(1);
  });
});

type Side = 0 | 1;

/** Every order of so many turns of the one side and of the other. */
function ways(first: number, second: number): Side[][] {
  if (first === 0) return [new Array<Side>(second).fill(1)];
  if (second === 0) return [new Array<Side>(first).fill(0)];
  return [
    ...ways(first - 1, second).map((rest): Side[] => [0, ...rest]),
    ...ways(first, second - 1).map((rest): Side[] => [1, ...rest]),
  ];
}

/** Two ways to a storage, whose calls come in a given order; what comes after it, as it comes. */
function inOrder(storage: Storage, order: readonly Side[]) {
  const waiting: [(() => void)[], (() => void)[]] = [[], []];
  const ended = [false, false];
  const left = [...order];
  const go = () => {
    while (left[0] !== undefined && ended[left[0]]) left.shift();
    const next = left[0];
    if (next === undefined) {
      for (const side of waiting) for (const call of side.splice(0)) call();
    } else if (waiting[next].length > 0) {
      left.shift();
      waiting[next].shift()?.();
    }
  };
  return {
    over: (side: Side) => {
      ended[side] = true;
      go();
    },
    of: (side: Side): Storage =>
      new Proxy(storage, {
        get: (target, key) => {
          const member = Reflect.get(target, key);
          if (typeof member !== "function") return member;
          return async (...args: unknown[]) => {
            await new Promise<void>((resolve) => {
              waiting[side].push(resolve);
              go();
            });
            const answer = await member.apply(target, args);
            // The next call may come when this one has been answered.
            setImmediate(go);
            return answer;
          };
        },
      }),
  };
}
