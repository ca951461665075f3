import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { engineResolvers } from "../support/merge-engine.js";
import { anyHistory } from "../support/merge-happenings.js";
import { Pair } from "../support/merge-pair.js";
import { RESOLVERS } from "../support/merge-values.js";
import { BACKENDS, makeStore } from "../support/stores.js";

/** `npm test` draws some dozens of histories, the nightly run thousands. */
const RUNS = Number(process.env.AGSTATE_RUNS ?? 500);
let created = 0;

describe.each(BACKENDS)("merging histories on %s", (backend) => {
  it("goes as a model of histories goes, whatever is merged, resolved or moved", async () => {
    const { store, another } = await makeStore(backend, { resolvers: engineResolvers(RESOLVERS) });
    const total: Record<string, number> = {};
    await fc.assert(
      fc.asyncProperty(anyHistory, async (drawn) => {
        const cold = backend === "memory" ? store : await another();
        const pair = await Pair.begin(store, cold, `w${created++}`, drawn);
        for (const happening of drawn.happenings) await pair.go(happening);
        const report = await pair.workflow.fsck();
        expect([report.problems, report.unreachable]).toEqual([[], 0]);
        if (cold !== store) await cold.close();
        for (const [what, n] of Object.entries(pair.counts)) total[what] = (total[what] ?? 0) + n;
      }),
      { numRuns: Math.max(5, Math.ceil(RUNS * (backend === "memory" ? 0.2 : 0.1))) },
    );
    // Enough histories must have what makes merging hard.
    if (RUNS < 500) return;
    for (const what of ["merges", "conflicts", "criss", "octopus", "stored"]) {
      expect(total[what], what).toBeGreaterThan(0);
    }
  });
});
