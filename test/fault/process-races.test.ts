import { describe, expect, it } from "vitest";
import { resultOf, startTogether } from "../support/child-processes.js";
import { expectSound, storePlace, withStore, withWorkflow } from "../support/sqlite-store.js";

const MERGE = new URL("./children/merge-into-canonical.mjs", import.meta.url);
const CREATE = new URL("./children/create-in-a-race.mjs", import.meta.url);
const OPEN = new URL("./children/open-many.mjs", import.meta.url);

const WORKFLOW = "raced";
const AGENTS = 8;
const ROUNDS = 50;
const RACERS = 4;
const CREATIONS = 40;
const OPENERS = 6;
const OPENED_AT_ONCE = 20;

interface Landed {
  readonly ids: { readonly own: string[]; readonly canonical: string[] };
  readonly conflicts: number;
}

describe("nine processes on one store", () => {
  it("lose nothing: eight merge their branches into canonical while one commits to it", async () => {
    const path = storePlace();
    await withStore(path, (store) => store.createWorkflow(WORKFLOW));
    const agents = Array.from({ length: AGENTS }, (_, i) => `a${i}`);
    const children = await startTogether(
      MERGE,
      [...agents, undefined].map((agent) => ({ path, workflow: WORKFLOW, agent, rounds: ROUNDS })),
    );
    const landed = await Promise.all(children.map((child) => resultOf<Landed>(child)));
    console.log(`conflicts met by process: ${landed.map((each) => each.conflicts).join(" ")}`);

    await withWorkflow(path, WORKFLOW, async (workflow, store) => {
      const counts = Object.fromEntries([...agents, "supervisor"].map((agent) => [agent, ROUNDS]));
      expect(await workflow.stateAt("canonical")).toEqual(counts);
      const agreed: string[] = [];
      for await (const { id } of (await workflow.canonical()).log({ firstParent: true })) {
        agreed.push(id);
      }
      expect(agreed.slice(0, -1).sort()).toEqual(landed.flatMap(({ ids }) => ids.canonical).sort());

      const all = new Set<string>();
      for await (const { id } of workflow.log({ revisions: ["canonical"] })) all.add(id);
      for (const [i, agent] of agents.entries()) {
        const own: string[] = [];
        for await (const { id } of (await workflow.branch(`agents/${agent}/work`)).log({
          limit: ROUNDS,
        })) {
          own.push(id);
        }
        expect(own.reverse()).toEqual(landed[i]!.ids.own);
        for (const id of own) expect(all.has(id), `canonical has no ${id} of ${agent}`).toBe(true);
      }
      expect(await expectSound(workflow, store)).toBe(all.size + 1);
    });
  });
});

describe("processes that create the same names at once", () => {
  it("agree on one maker each, and a loser leaves nothing", async () => {
    const path = storePlace();
    await withStore(path, (store) => store.createWorkflow(WORKFLOW));
    const children = await startTogether(
      CREATE,
      Array.from({ length: RACERS }, () => ({ path, workflow: WORKFLOW, rounds: CREATIONS })),
    );
    const made = await Promise.all(children.map((child) => resultOf<string[]>(child)));
    console.log(`made by process: ${made.map((each) => each.length).join(" ")}`);

    const expected = ["branch", "tag", "workflow"].flatMap((what) =>
      Array.from({ length: CREATIONS }, (_, n) => `${what} ${n}`),
    );
    expect(made.flat().sort()).toEqual(expected.sort());
    await withWorkflow(path, WORKFLOW, async (workflow, store) => {
      // Each ref was made once: it has one log entry.
      const refs = await workflow.refs();
      expect(refs.filter(({ seq }) => seq !== 1)).toEqual([]);
      expect(refs).toHaveLength(2 * CREATIONS + 2);
      await expectSound(workflow, store);
      for (let n = 0; n < CREATIONS; n++) {
        const { problems, commits, refs } = await (await store.workflow(`w${n}`)).fsck();
        expect({ problems, commits, refs }).toEqual({ problems: [], commits: 2, refs: 2 });
      }
    });
  });
});

describe("a store that does not exist yet", () => {
  it.each([
    { openers: 1, times: OPENED_AT_ONCE },
    { openers: OPENERS, times: 4 },
  ])(
    "is made once when $openers processes open it $times times each",
    async ({ openers, times }) => {
      const path = storePlace();
      const children = await startTogether(
        OPEN,
        Array.from({ length: openers }, () => ({ path, times })),
      );
      const ids = await Promise.all(children.map((child) => resultOf<string[]>(child)));
      expect(ids.flat()).toHaveLength(openers * times);
      expect(new Set(ids.flat()).size).toBe(1);

      await withStore(path, async (store) => {
        expect((await store.describe()).storeId).toBe(ids[0]![0]);
        expect(await store.checkStructure()).toEqual([]);
        const expected = children.flatMap(({ pid }) =>
          Array.from({ length: times }, (_, i) => `${pid}-${i}`),
        );
        const workflows: string[] = [];
        for await (const { id } of store.workflows()) workflows.push(id);
        expect(workflows.sort()).toEqual(expected.sort());
      });
    },
  );
});
