import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Conflict,
  type JsonValue,
  openStore,
  type Policies,
  type StateSchema,
  type Store,
} from "../../src/index.js";
import { engineResolvers } from "../support/merge-engine.js";
import { canon, differences } from "../support/merge-model.js";
import {
  anyIsolation,
  anyPolicies,
  anyRecipe,
  edited,
  RESOLVERS,
  someEdits,
  stateOf,
} from "../support/merge-values.js";
import { usually } from "../support/runs.js";

type Members = Readonly<Record<string, JsonValue>>;
const isObject = (value: JsonValue): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Renames, wraps, splits and drops, of any value. */
const MIGRATIONS: StateSchema["migrations"] = {
  1: (state) => {
    if (!isObject(state)) return { value: state };
    const { n, m: _, ...rest } = state;
    return n === undefined ? rest : { ...rest, count: { n, unit: "piece" } };
  },
  2: (state) => {
    if (!isObject(state)) return { value: state };
    const { log, ...rest } = state;
    if (!Array.isArray(log)) return { ...rest, ...(log !== undefined && { log: [log] }) };
    return { ...rest, log: log.map((entry: JsonValue) => [entry, true]), first: log[0] ?? null };
  },
};
const LATEST = 3;

const schemaOf = (version: number): StateSchema => ({
  version,
  migrations: Object.fromEntries(
    Object.entries(MIGRATIONS).filter(([from]) => Number(from) < version),
  ),
});

function migrated(state: JsonValue, from: number): JsonValue {
  let value = state;
  for (let version = from; version < LATEST; version++) {
    value = MIGRATIONS[version]?.(structuredClone(value)) as JsonValue;
  }
  return value;
}

/** A commit of a history: its state as it is committed, and the version of that. */
interface Drawn {
  readonly state: JsonValue;
  readonly version: number;
}

const versions = (length: number) =>
  fc
    .array(fc.integer({ min: 1, max: LATEST }), { minLength: length, maxLength: length })
    .map((drawn) => drawn.sort((a, b) => a - b));

const told = (conflicts: readonly Conflict[]) =>
  conflicts
    .map(({ part, path, kind, base, ours, theirs }) => {
      const value = (side: object) => canon((side as { value?: JsonValue }).value);
      return [part, path, kind, ...[base, ours, theirs].map(value), ours.branch].join(" | ");
    })
    .sort();

/** The store with every schema: a workflow is opened by the version that is in force then. */
class Versions {
  private current: number | undefined;
  private constructor(readonly store: Store) {}

  static async open(): Promise<Versions> {
    let made: Versions | undefined;
    const store = await openStore("memory:", {
      resolvers: engineResolvers(RESOLVERS),
      schema: () => (made?.current === undefined ? undefined : schemaOf(made.current)),
    });
    made = new Versions(store);
    return made;
  }

  /** Does something by a version; undefined: without a schema. */
  async by<T>(version: number | undefined, work: (store: Store) => Promise<T>): Promise<T> {
    this.current = version;
    return work(this.store);
  }
}

let created = 0;

describe("merging states of several versions", () => {
  const drawn = fc.record({
    recipe: anyRecipe,
    policies: anyPolicies,
    isolation: anyIsolation,
    edits: fc.array(someEdits, { minLength: 6, maxLength: 6 }),
    ours: versions(4),
    theirs: versions(3),
    crossed: fc.boolean(),
  });

  it("is merging them after all were migrated by the same functions", async () => {
    const versions = await Versions.open();
    const counts = { conflicts: 0, migrated: 0 };
    await fc.assert(
      fc.asyncProperty(drawn, async ({ recipe, policies, isolation, edits, crossed, ...by }) => {
        const base: Drawn = { state: stateOf(recipe), version: by.ours[0] as number };
        const edit = (state: JsonValue, i: number) => edited(state, edits[i] ?? []);
        const a1 = { state: edit(base.state, 0), version: by.ours[1] as number };
        const a2 = { state: edit(a1.state, 1), version: by.ours[2] as number };
        const a3 = { state: edit(a2.state, 2), version: by.ours[3] as number };
        const least = (version: number) => Math.max(version, base.version);
        const b1 = { state: edit(base.state, 3), version: least(by.theirs[0] as number) };
        const b2 = { state: edit(b1.state, 4), version: least(by.theirs[1] as number) };
        const b3 = { state: edit(b2.state, 5), version: least(by.theirs[2] as number) };

        /** The same history, its states as they are or after migrating each. */
        const make = async (asStored: boolean) => {
          const id = `w${created++}`;
          const of = ({ state, version }: Drawn) => (asStored ? state : migrated(state, version));
          const at = ({ version }: Drawn) => (asStored ? version : undefined);
          const declared = isolation.length === 0 ? {} : { isolation };
          await versions.by(at(base), async (store) => {
            const given = { state: of(base), policies: policies as Policies, ...declared };
            const workflow = await store.createWorkflow(id, given);
            await workflow.branch({ agent: "a", branch: "x" });
          });
          const commit = (branch: string, one: Drawn, mergeParents: readonly string[] = []) =>
            versions.by(at(one), async (store) => {
              const handle = await (await store.workflow(id)).branch(branch);
              return (await handle.commit({ state: of(one), allowEmpty: true, mergeParents })).id;
            });
          const firstA = await commit("canonical", a1);
          const firstB = await commit("a/x", b1);
          await commit("canonical", a2, crossed ? [firstB] : []);
          await commit("a/x", b2, crossed ? [firstA] : []);
          await commit("canonical", a3);
          await commit("a/x", b3);
          return versions.by(asStored ? LATEST : undefined, async (store) => {
            const workflow = await store.workflow(id);
            const seen = await workflow.preview(["a/x"]);
            const resolve = ({ path }: Conflict) =>
              ({ take: path.length % 2 === 0 ? "theirs" : "ours" }) as const;
            const { commit: head } = await workflow.merge(["a/x"], { resolve });
            const { objects, unreachable, problems } = await workflow.fsck();
            expect([problems, unreachable]).toEqual([[], 0]);
            const link = (await workflow.internals.commits.read(head?.id as never)).root.state;
            return { workflow, seen, head, objects, link: link?.id };
          });
        };
        const found = await make(true);
        const expected = await make(false);
        expect(told(found.seen.conflicts)).toEqual(told(expected.seen.conflicts));
        expect(found.seen.changes.map(({ path }) => path)).toEqual(
          expected.seen.changes.map(({ path }) => path),
        );
        const [state, other] = [await found.seen.state(), await expected.seen.state()];
        expect(differences(state, other)).toEqual([]);
        expect(found.link).toBe(expected.link);
        expect(found.head?.stateVersion).toBe(LATEST);
        counts.conflicts += found.seen.conflicts.length;
        const record = await found.workflow.mergeRecord(found.head?.id as string);
        expect([
          record?.migratedFrom,
          record?.sources[0]?.migratedFrom,
          record?.stateVersion,
        ]).toEqual(
          [a3, b3]
            .map(({ version }): number | undefined => (version < LATEST ? version : undefined))
            .concat(LATEST),
        );
        if (record?.migratedFrom !== undefined) counts.migrated++;
      }),
      { numRuns: usually(25, 3000) },
    );
    expect(counts.conflicts).toBeGreaterThan(0);
    expect(counts.migrated).toBeGreaterThan(0);
  });

  it("reads, edits and migrates a branch to what its functions give", async () => {
    const versions = await Versions.open();
    const state = fc.record({
      recipe: anyRecipe,
      version: fc.integer({ min: 1, max: LATEST - 1 }),
      isolation: anyIsolation,
    });
    await fc.assert(
      fc.asyncProperty(state, async ({ recipe, version, isolation }) => {
        const id = `r${created++}`;
        const given = stateOf(recipe);
        const expected = migrated(given, version);
        await versions.by(version, async (store) => {
          const declared = isolation.length === 0 ? {} : { isolation };
          const workflow = await store.createWorkflow(id, { state: given, ...declared });
          await workflow.branch({ agent: "a", branch: "x" });
        });
        await versions.by(LATEST, async (store) => {
          const workflow = await store.workflow(id);
          const branch = await workflow.branch("a/x");
          expect(differences(await branch.state(), expected)).toEqual([]);
          const report = await workflow.migrateState({ branches: ["canonical"] });
          expect(report.branches.map(({ status }) => status)).toEqual(["migrated"]);
          const canonical = await workflow.canonical();
          const stored = await canonical.state("", { migrate: false });
          expect(differences(stored, expected)).toEqual([]);
          // However a state came about, its id is that of its value.
          await branch.update([{ op: "set", path: "/added", value: 1 }]);
          await canonical.update([{ op: "set", path: "/added", value: 1 }]);
          const links = [branch, canonical].map(({ loadedHead }) => loadedHead.root.state?.id);
          expect(new Set(links).size).toBe(1);
          const { problems, unreachable } = await workflow.fsck();
          expect([problems, unreachable]).toEqual([[], 0]);
        });
      }),
      { numRuns: usually(30, 2000) },
    );
  });
});
