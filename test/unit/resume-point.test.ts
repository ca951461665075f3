import { expect, it } from "vitest";
import { openStore, type Storage } from "../../src/index.js";
import { type CountingStorage, counting } from "../../src/storage/decorators/counting.js";
import { BACKENDS, makeStore } from "../support/stores.js";

/** How long the longer history is; `npm run test:nightly` takes 100,000. */
const STEPS = Number(process.env.AGSTATE_STEPS ?? 1500);

it.each(BACKENDS)(
  "the resume point is one round trip, whatever came before, on %s",
  async (backend) => {
    const { store, url } = await makeStore(backend);
    const workflow = await store.createWorkflow("w");
    let counts: CountingStorage | undefined;
    const wrap = (storage: Storage) => {
      counts = counting(backend === "memory" ? workflow.internals.storage : storage);
      return counts.storage;
    };
    const other = await openStore(url, { wrap });
    const handle = await (await other.workflow("w")).branch({ agent: "a", branch: "x" });
    const branch = await workflow.branch({ agent: "a", branch: "x" });
    let resolve: (value: number) => void = () => undefined;
    let steps = 0;
    for (const more of [10, STEPS]) {
      while (steps < more) {
        const many = Array.from({ length: Math.min(64, more - steps) }, (_, i) =>
          branch.step({ name: `step ${i}`, action: "inference" }, () => i),
        );
        await Promise.all(many);
        steps += many.length;
      }
      const open = branch.step({ name: "open" }, () => new Promise<number>((r) => (resolve = r)));
      while ((await branch.resumePoint()).inFlight.length === 0);
      steps++;
      counts?.reset();
      expect(await handle.resumePoint()).toEqual({ nextSeq: steps + 1, inFlight: [steps] });
      expect(counts?.counts().roundTrips).toBe(1);
      // What is written beside steps changes nothing of it.
      await handle.update([{ op: "set", path: "/beside", value: steps }]);
      expect(await branch.resumePoint()).toEqual({ nextSeq: steps + 1, inFlight: [steps] });
      resolve(1);
      await open;
      counts?.reset();
      expect(await handle.resumePoint()).toEqual({ nextSeq: steps + 1, inFlight: [] });
      expect(counts?.counts().roundTrips).toBe(1);
      console.log(`${backend}: one round trip at ${steps} steps`);
    }
  },
);
