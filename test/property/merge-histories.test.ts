import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Branch, type JsonValue, openStore, type Policies } from "../../src/index.js";
import { engineResolvers } from "../support/merge-engine.js";
import { pointerOf } from "../support/merge-expected.js";
import { anyHistory } from "../support/merge-happenings.js";
import { canon, differences, MergeModel } from "../support/merge-model.js";
import { Pair } from "../support/merge-pair.js";
import {
  anyPolicies,
  anyRecipe,
  edited,
  RESOLVERS,
  someEdits,
  stateOf,
} from "../support/merge-values.js";
import { BACKENDS, makeStore } from "../support/stores.js";

/** `npm test` draws some dozens of histories, the nightly run thousands. */
const RUNS = Number(process.env.AGSTATE_RUNS ?? 150);
const options = { resolvers: engineResolvers(RESOLVERS) };
let created = 0;

describe.each(BACKENDS)("merging histories on %s", (backend) => {
  it("goes as a model of histories goes, whatever is merged, resolved or moved", async () => {
    const kept = await makeStore(backend, options);
    const total: Record<string, number> = {};
    await fc.assert(
      fc.asyncProperty(anyHistory, async (drawn) => {
        // Opened here and not by the helper, which holds what it opened until the test ends.
        const fresh = await (backend === "memory"
          ? openStore("memory:", options)
          : openStore(kept.url, { ...options, create: false }));
        try {
          const store = backend === "memory" ? fresh : kept.store;
          const pair = await Pair.begin(store, fresh, `w${created++}`, drawn);
          for (const happening of drawn.happenings) await pair.go(happening);
          const report = await pair.workflow.fsck();
          expect([report.problems, report.unreachable]).toEqual([[], 0]);
          for (const [what, n] of Object.entries(pair.counts)) total[what] = (total[what] ?? 0) + n;
        } finally {
          await fresh.close();
        }
      }),
      { numRuns: Math.max(5, Math.ceil(RUNS * (backend === "memory" ? 0.2 : 0.1))) },
    );
    // Enough histories must have what makes merging hard.
    if (RUNS < 500) return;
    for (const what of ["merges", "conflicts", "criss", "octopus", "stored"]) {
      expect(total[what], what).toBeGreaterThan(0);
    }
  });

  it("takes one commit's change over, and back, as a merge by the commit's parent", async () => {
    const { store } = await makeStore(backend, options);
    const drawn = fc.record({
      recipe: anyRecipe,
      policies: anyPolicies,
      sides: fc.tuple(someEdits, someEdits, someEdits, someEdits),
    });
    await fc.assert(
      fc.asyncProperty(
        drawn,
        async ({ recipe, policies, sides: [before, change, since, other] }) => {
          const state = stateOf(recipe);
          const workflow = await store.createWorkflow(`p${created++}`, {
            state,
            policies: policies as Policies,
          });
          const commit = async (branch: Branch, next: JsonValue) =>
            (await branch.commit({ state: next, allowEmpty: true, author: "a" })).id;
          const source = await workflow.branch({ agent: "a", branch: "x" });
          const [parent, picked] = [edited(state, before), edited(edited(state, before), change)];
          await commit(source, parent);
          const id = await commit(source, picked);
          const head = edited(picked, since);
          await commit(source, head);
          const target = edited(state, other);
          await commit(await workflow.canonical(), target);

          for (const [result, into, ours, base, theirs] of [
            [await workflow.cherryPick(id), "canonical", target, parent, picked],
            [await workflow.revert(id, { onto: "a/x" }), "a/x", head, picked, parent],
          ] as const) {
            const model = new MergeModel(policies, RESOLVERS);
            const expected = model.merge(ours, { base, theirs });
            if (model.ambiguous) continue;
            const contests = [...model.contests.values()];
            const conflict = contests.length > 0;
            const same = canon(expected) === canon(ours);
            expect(result.status).toBe(conflict ? "conflict" : same ? "up-to-date" : "applied");
            expect(result.conflicts.map(({ path }) => path).sort()).toEqual(
              contests.map(({ path }) => pointerOf(path)).sort(),
            );
            expect(differences(await workflow.stateAt(into), conflict ? ours : expected)).toEqual(
              [],
            );
          }
        },
      ),
      { numRuns: Math.max(5, Math.ceil(RUNS * 0.06)) },
    );
  });
});
