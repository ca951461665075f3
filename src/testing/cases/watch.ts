import assert from "node:assert/strict";
import type { CommitRecord, Storage, Watch } from "../../storage/port.js";
import type { ConformanceCase } from "../case.js";
import { ABSENT, at, begin, chain, move, mustMove } from "../fixtures.js";

const REF = "refs/heads/canonical";

/** How long a wake is waited for before it counts as missing: far longer than any should take. */
const PATIENCE_MS = 10_000;

/** Counts wakes, and waits for the next. */
class Sleeper {
  wakes = 0;
  #next: (() => void) | null = null;

  readonly wake = () => {
    this.wakes++;
    this.#next?.();
  };

  /** Waits for a wake that comes after some work has begun. */
  async wokenBy(what: string, work: () => Promise<unknown>): Promise<void> {
    const woken = new Promise<void>((resolve) => {
      this.#next = resolve;
    });
    await work();
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(
        () => reject(new assert.AssertionError({ message: `no wake after ${what}` })),
        PATIENCE_MS,
      );
    });
    await Promise.race([woken, late]);
    clearTimeout(timer);
  }
}

/** Moves a ref in every way, and expects each move to wake. */
async function everyMoveWakes(writer: Storage, sleeper: Sleeper, ref: string): Promise<void> {
  const [a, b, c, d] = chain(4) as [CommitRecord, CommitRecord, CommitRecord, CommitRecord];
  const moves = {
    "a creation": move(ref, ABSENT, [a]),
    "an append": move(ref, at(a), [b]),
    "another append": move(ref, at(b), [c]),
    "a reset": move(ref, at(c), [], { target: a.id }),
    "a deletion": move(ref, at(a), []),
    "a creation anew": move(ref, ABSENT, [], { target: c.id }),
    "an append to that": move(ref, at(c), [d]),
  };
  for (const [what, one] of Object.entries(moves)) {
    await sleeper.wokenBy(what, () => mustMove(writer, one));
  }
}

async function watching(storage: Storage, sleeper: Sleeper, w = "w"): Promise<Watch> {
  return storage.watch(w, sleeper.wake);
}

export const watchCases: readonly ConformanceCase[] = [
  {
    name: "every move wakes whoever watches the workflow",
    async run({ storage }) {
      await begin(storage, "w");
      const sleeper = new Sleeper();
      const watch = await watching(storage, sleeper);
      await everyMoveWakes(storage, sleeper, REF);
      await watch.close();
      await watch.close();
    },
  },
  {
    name: "a move by another connection wakes as well",
    async run({ storage, beside }) {
      if (beside === undefined) return;
      await begin(storage, "w");
      const other = await beside();
      const sleeper = new Sleeper();
      await watching(storage, sleeper);
      await everyMoveWakes(other, sleeper, REF);
    },
  },
  {
    name: "a watch that was closed is not woken any more, the others are",
    async run({ storage }) {
      await begin(storage, "w", "v");
      const [gone, same, other] = [new Sleeper(), new Sleeper(), new Sleeper()];
      const watch = await watching(storage, gone);
      await watching(storage, same);
      await watching(storage, other, "v");
      await watch.close();
      const { wakes } = gone;
      await everyMoveWakes(storage, same, REF);
      const [root] = chain(1);
      await other.wokenBy("a move in v", () =>
        mustMove(storage, move(REF, ABSENT, [root as CommitRecord]), { workflow: "v" }),
      );
      assert.equal(gone.wakes, wakes);
    },
  },
  {
    name: "a watch can begin anew after the last one was closed",
    async run({ storage }) {
      await begin(storage, "w");
      for (const ref of ["refs/heads/one", "refs/heads/two"]) {
        const sleeper = new Sleeper();
        const watch = await watching(storage, sleeper);
        await everyMoveWakes(storage, sleeper, ref);
        await watch.close();
      }
    },
  },
  {
    name: "closing the store wakes a last time, and a watch can be closed after it",
    async run({ storage }) {
      await begin(storage, "w");
      const sleeper = new Sleeper();
      const watch = await watching(storage, sleeper);
      await sleeper.wokenBy("the end", () => storage.close());
      const { wakes } = sleeper;
      await watch.close();
      assert.equal(sleeper.wakes, wakes);
    },
  },
  {
    name: "a workflow that is not there can be watched, and is not made by it",
    async run({ storage }) {
      const sleeper = new Sleeper();
      await watching(storage, sleeper);
      assert.equal(await storage.readWorkflow("w"), undefined);
      await begin(storage, "w");
      await everyMoveWakes(storage, sleeper, REF);
    },
  },
];
