import { expect } from "vitest";
import { parsePointer } from "../../src/core/json-pointer.js";
import type { Branch, Conflict, JsonValue, Policies, Store, Workflow } from "../../src/index.js";
import { engineIsolation } from "./merge-engine.js";
import {
  answer,
  contestKey,
  decide,
  type Expected,
  expectMerge,
  nothing,
  pointerOf,
  settleAll,
  tellExpected,
  tellFound,
} from "./merge-expected.js";
import { BRANCHES, type Happening, type History, type Merging } from "./merge-happenings.js";
import { ancestors, bestCommon, type ModelCommit, plan } from "./merge-histories.js";
import { canon, differences, equal, find, type Maybe } from "./merge-model.js";
import { type Edit, edited, stateOf } from "./merge-values.js";
import { freshLink } from "./object-store.js";

/** A workflow and its model, which go through a history side by side. */
export class Pair {
  readonly heads = new Map<string, ModelCommit>();
  readonly commits = new Map<string, ModelCommit>();
  readonly counts = {
    merges: 0,
    conflicts: 0,
    criss: 0,
    octopus: 0,
    stored: 0,
    skipped: 0,
    cascades: 0,
  };

  private constructor(
    readonly workflow: Workflow,
    private readonly isolation: readonly string[],
    /** The same workflow behind cold caches. */
    private readonly cold: Workflow,
  ) {}

  static async begin(
    store: Store,
    cold: Store,
    id: string,
    { recipe, policies, isolation }: History,
  ): Promise<Pair> {
    const declared = isolation.length === 0 ? {} : { isolation };
    const state = stateOf(recipe);
    const workflow = await store.createWorkflow(id, {
      state,
      policies: policies as Policies,
      ...declared,
    });
    const pair = new Pair(workflow, isolation, await cold.workflow(id));
    const { head } = await workflow.canonical();
    const policy = Object.keys(policies).length === 0 ? undefined : (policies as JsonValue);
    const first = pair.made({ id: head.id, parents: [], state, policy });
    for (const name of BRANCHES) {
      const [, agent, own] = name.split("/");
      if (own !== undefined) await workflow.branch({ agent: agent as string, branch: own });
      pair.heads.set(name, first);
    }
    return pair;
  }

  private made(commit: Omit<ModelCommit, "partIds">): ModelCommit {
    const { state, policy } = commit;
    const idOf = (value: Maybe, isolation: ReturnType<typeof engineIsolation> = null) =>
      value === undefined ? "" : freshLink(value, isolation).id;
    const partIds = { state: idOf(state, engineIsolation(this.isolation)), policy: idOf(policy) };
    const made = { ...commit, partIds };
    this.commits.set(made.id, made);
    return made;
  }

  private record(name: string, commit: Omit<ModelCommit, "partIds">): void {
    this.heads.set(name, this.made(commit));
  }

  private head(index: number): ModelCommit {
    return this.heads.get(BRANCHES[index] as string) as ModelCommit;
  }

  private open(index: number): Promise<Branch> {
    return this.workflow.branch(BRANCHES[index] as string);
  }

  async go(happening: Happening): Promise<void> {
    if (happening.what === "edit") return this.edit(happening.branch, happening.edits);
    if (happening.what === "merge") {
      const names = happening.sources.map((index) => BRANCHES[index] as string);
      return this.merge(
        happening,
        names,
        happening.sources.map((index) => this.head(index)),
      );
    }
    if (happening.what === "cross") {
      const { into, with: other } = happening;
      if (into === other) return;
      await this.edit(into, happening.one.edits);
      await this.edit(other, happening.other.edits);
      const [a, b] = [this.head(into), this.head(other)];
      await this.merge(happening, [b.id], [b]);
      await this.merge({ ...happening, into: other }, [a.id], [a]);
      await this.edit(into, happening.one.more);
      return this.edit(other, happening.other.more);
    }
    const { branch, path, strategy } = happening;
    const parent = this.head(branch);
    const handle = await this.open(branch);
    const { id } = await handle.setPolicies({ [path]: strategy });
    const rules = new Map(Object.entries((parent.policy ?? {}) as { [path: string]: JsonValue }));
    if (strategy === null) rules.delete(path);
    else rules.set(path, strategy);
    expect(await handle.policies()).toEqual(Object.fromEntries(rules));
    if (id === parent.id) return;
    const policy = rules.size === 0 ? undefined : (Object.fromEntries(rules) as JsonValue);
    this.record(BRANCHES[branch] as string, { id, parents: [parent], state: parent.state, policy });
  }

  private async edit(branch: number, edits: readonly Edit[]): Promise<void> {
    const parent = this.head(branch);
    const state = edited(parent.state as JsonValue, edits);
    const { id } = await (await this.open(branch)).commit({ state });
    if (id !== parent.id)
      this.record(BRANCHES[branch] as string, {
        id,
        parents: [parent],
        state,
        policy: parent.policy,
      });
  }

  private async merge(
    merging: Merging,
    names: readonly string[],
    given: readonly ModelCommit[],
  ): Promise<void> {
    const { salt, how } = merging;
    const target = this.head(merging.into);
    const into = BRANCHES[merging.into] as string;
    const { kind, sources } = plan(target, given);
    const policies = { ...(target.policy as object | undefined), ...merging.call };
    const options = { into, policies: merging.call as Policies };
    const expected = expectMerge(target, kind === "merge" ? sources : [], policies, nothing);
    const { contests } = expected;

    const seen = await this.workflow.preview(names, options);
    // The same again; on SQLite with nothing in any cache.
    const again = await this.cold.preview(names, options);
    expect(JSON.stringify([again.status, again.conflicts, again.changes])).toBe(
      JSON.stringify([seen.status, seen.conflicts, seen.changes]),
    );
    if (kind !== "merge") {
      expect([seen.status, seen.conflicts]).toEqual([kind, []]);
      const { commit } = await this.workflow.merge(names, options);
      const head = kind === "fast-forward" ? (sources[0] as ModelCommit) : target;
      expect(commit?.id).toBe(head.id);
      this.heads.set(into, head);
      return;
    }
    this.counts.merges++;
    this.counts.conflicts += contests.length;
    if (sources.length > 1) this.counts.octopus++;
    if (sources.some((source) => bestCommon(source, [target]).length > 1)) this.counts.criss++;
    expect(seen.status).toBe(seen.conflicts.length > 0 ? "conflict" : "merged");
    if (expected.ambiguous) {
      this.counts.skipped++;
      return;
    }
    expect(tellFound(seen.conflicts)).toEqual(tellExpected(contests));
    expect(differences(await seen.state(), expected.values.state)).toEqual([]);
    if (sources.length === 1) this.checkSides(seen.conflicts, target, sources[0] as ModelCommit);

    if (contests.length > 0 && how === "report") {
      const result = await this.workflow.merge(names, options);
      expect([result.status, result.commit, result.stored]).toEqual(["conflict", null, null]);
      expect((await this.open(merging.into)).head.id).toBe(target.id);
      return;
    }
    const settled = settleAll(contests, salt);
    let final = expectMerge(target, sources, policies, settled);
    const known = new Set(contests.map(contestKey));
    const isNew = (contest: Expected["contests"][number]) => !known.has(contestKey(contest));
    const cascades = final.contests.some(isNew);
    // What was settled made a later source conflict anew: that is settled as well.
    while (final.contests.some(isNew)) {
      const more = settleAll(final.contests.filter(isNew), salt);
      for (const contest of final.contests) known.add(contestKey(contest));
      for (const part of ["state", "policy"] as const) {
        for (const [path, value] of more[part]) settled[part].set(path, value);
      }
      final = expectMerge(target, sources, policies, settled);
    }
    if (cascades) this.counts.cascades++;
    else if (contests.length > 0 && (how === "hand" || how === "later")) {
      return this.byHand(merging, names, given, options, contests);
    }
    const resolve = ({ part, path, kind }: Conflict) =>
      answer(part, parsePointer(path), kind, salt);
    const result = await this.workflow.merge(names, { ...options, resolve });
    expect([result.status, result.conflicts]).toEqual(["merged", []]);
    await this.landed(into, result.commit?.id as string, [target, ...sources], final, policies);
  }

  /** Stores the merge, resolves it path by path, and finishes it; the target may move in between. */
  private async byHand(
    merging: Merging,
    names: readonly string[],
    given: readonly ModelCommit[],
    options: Parameters<Workflow["merge"]>[1] & { into: string },
    contests: Expected["contests"],
  ): Promise<void> {
    this.counts.stored++;
    const { into } = options;
    const stored = await this.workflow.merge(names, { ...options, onConflict: "store" });
    expect(stored.status).toBe("conflict");
    const merge = await this.cold.storedMerge(stored.stored as string);
    const order = [...contests].sort(
      (a, b) => (contestKey(a).length % 5) - (contestKey(b).length % 5),
    );
    const byHand = order.slice(merging.how === "later" ? 1 : 0);
    for (const contest of byHand) {
      const value = decide(contest, merging.salt);
      await merge.resolve(
        pointerOf(contest.path),
        value === undefined ? { delete: true } : { value },
        { part: contest.part },
      );
    }
    if (merging.how === "later") await this.edit(merging.into, merging.edits);

    const target = this.head(merging.into);
    const { kind, sources } = plan(target, given);
    expect(kind).toBe("merge");
    const policies = { ...(target.policy as object | undefined), ...merging.call };
    const now = expectMerge(target, sources, policies, nothing);
    if (now.ambiguous) return merge.abort();
    // What is in conflict as it was stays resolved; anything else is open.
    const decided = new Set(byHand.map(contestKey));
    const open = now.contests.filter((contest) => !decided.has(contestKey(contest)));
    const settled = settleAll(now.contests, merging.salt);
    const final = expectMerge(target, sources, policies, settled);
    if (final.contests.length !== now.contests.length) {
      this.counts.cascades++;
      return merge.abort();
    }
    expect(tellFound(await merge.conflicts())).toEqual(tellExpected(open));
    if (open.length > 0) {
      const early = await merge.continue();
      expect([early.status, early.commit, early.stored]).toEqual(["conflict", null, stored.stored]);
    }
    const resolve = ({ part, path, kind: k }: Conflict) =>
      answer(part, parsePointer(path), k, merging.salt);
    const result = await merge.continue({ resolve });
    expect([result.status, result.conflicts]).toEqual(["merged", []]);
    expect(await this.workflow.storedMerges()).toEqual([]);
    await this.landed(into, result.commit?.id as string, [target, ...sources], final, policies);
  }

  /** Checks a merge commit against the model, and takes it in. */
  private async landed(
    into: string,
    id: string,
    parents: ModelCommit[],
    expected: Expected,
    policies: object,
  ): Promise<void> {
    const state = await this.workflow.stateAt(id);
    expect(differences(state, expected.values.state)).toEqual([]);
    const loaded = await this.workflow.internals.commits.read(id as never);
    expect(loaded.root.state?.id).toBe(freshLink(state, engineIsolation(this.isolation)).id);
    expect(loaded.parents).toEqual(parents.map((parent) => parent.id));
    const branch = await this.workflow.branch(into);
    expect(branch.head.id).toBe(id);
    expect(await branch.policies()).toEqual(expected.values.policy ?? {});
    const record = await this.cold.mergeRecord(id);
    expect(record?.policies).toEqual(policies);
    expect(record?.sources.map(({ head }) => head)).toEqual(
      parents.slice(1).map((parent) => parent.id),
    );
    expect((record?.resolved ?? []).map(({ part, path }) => `${part} ${path}`).sort()).toEqual(
      expected.contests.map(({ part, path }) => `${part} ${pointerOf(path)}`).sort(),
    );
    this.record(into, { id, parents, ...expected.values });
  }

  /** Both sides of a conflict are what the commits hold, differ, and were written by who is named. */
  private checkSides(
    conflicts: readonly Conflict[],
    target: ModelCommit,
    source: ModelCommit,
  ): void {
    const bases = bestCommon(source, [target]);
    for (const conflict of conflicts) {
      const { part, path, base, ours, theirs } = conflict;
      const at = (commit: ModelCommit) => find(commit[part], parsePointer(path));
      const value = (side: Conflict["base"]): Maybe => (side.exists ? side.value : undefined);
      expect(canon(value(ours))).toBe(canon(at(target)));
      expect(canon(value(theirs))).toBe(canon(at(source)));
      const [only, ...others] = bases;
      if (only !== undefined && others.length === 0)
        expect(canon(value(base))).toBe(canon(at(only)));
      if (part !== "state") continue;
      for (const [side, tip] of [
        [ours, target],
        [theirs, source],
      ] as const) {
        if (side.writer === null) {
          expect(side.exists).toBe(false);
          continue;
        }
        const writer = this.commits.get(side.writer.id) as ModelCommit;
        expect(ancestors(tip).has(writer)).toBe(true);
        expect(canon(at(writer))).toBe(canon(at(tip)));
        // Its parents do not all hold what it wrote.
        if (side.exists)
          for (const parent of writer.parents) expect(equal(at(parent), at(writer))).toBe(false);
      }
    }
  }
}
