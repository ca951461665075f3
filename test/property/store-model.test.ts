import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Branch,
  isAgstateError,
  type JsonValue,
  openStore,
  type Store,
  type Workflow,
} from "../../src/index.js";
import { usually } from "../support/runs.js";
import { agstateError, all, BACKENDS, type Backend, newPlace } from "../support/stores.js";

type State = { readonly [key: string]: JsonValue };

/** A commit of the model, with the id that the real one got. */
interface ModelCommit {
  readonly state: State;
  readonly parents: readonly ModelCommit[];
  readonly message: string;
  readonly step: number | null;
  readonly nextStep: number;
  readonly id: string;
}

interface ModelBranch {
  head: ModelCommit | null;
  /** How often it moved, creation and deletion included. */
  moves: number;
  maxStep: number;
}

/** What a workflow is, in plain maps: branches with their heads, and two handles on each, which may lag behind. */
interface Model {
  readonly branches: Map<string, ModelBranch>;
  /** Where each handle is, and how often its branch had moved when it came there; none before it was opened. */
  readonly handles: Map<string, { readonly commit: ModelCommit; readonly moves: number }>;
}

interface Real {
  readonly stores: readonly Store[];
  readonly workflows: readonly Workflow[];
  readonly handles: Map<string, Branch>;
}

const NAMES = ["canonical", "a/x", "a/y", "b/x"];
type Command = fc.AsyncCommand<Model, Real>;

function refOf(name: string): string {
  return name === "canonical" ? "refs/heads/canonical" : `refs/heads/agents/${name}`;
}

/** All commits below a head, itself included. */
function reachable(head: ModelCommit): Set<ModelCommit> {
  const seen = new Set<ModelCommit>([head]);
  for (const commit of seen) for (const parent of commit.parents) seen.add(parent);
  return seen;
}

/** Opens a branch with one of its handles, creating it when it is not there. */
class Open implements Command {
  constructor(
    private readonly name: string,
    private readonly handle: number,
    private readonly from: string,
  ) {}

  check(model: Readonly<Model>): boolean {
    const exists = (name: string) => (model.branches.get(name)?.head ?? null) !== null;
    return exists(this.name) || (this.name !== "canonical" && exists(this.from));
  }

  async run(model: Model, real: Real): Promise<void> {
    const workflow = real.workflows[this.handle]!;
    const branch = model.branches.get(this.name) ?? { head: null, moves: 0, maxStep: 0 };
    if (branch.head === null) {
      branch.head = model.branches.get(this.from)!.head!;
      branch.moves++;
      model.branches.set(this.name, branch);
    }
    const [agent, name] = this.name.split("/");
    const opened =
      name === undefined
        ? await workflow.canonical()
        : await workflow.branch({ agent: agent!, branch: name, from: this.from });
    expect(opened.head.id).toBe(branch.head.id);
    const key = `${this.name} ${this.handle}`;
    real.handles.set(key, opened);
    model.handles.set(key, { commit: branch.head, moves: branch.moves });
  }

  toString = () => `open(${this.name}, handle ${this.handle}, from ${this.from})`;
}

/** Writes through a handle: a whole state or edits, perhaps a step, perhaps a merge. */
class Write implements Command {
  constructor(
    private readonly name: string,
    private readonly handle: number,
    private readonly what: {
      readonly way: "state" | "update" | "nothing";
      readonly key: string;
      readonly value: JsonValue;
      readonly message: string;
      readonly step: boolean;
      readonly merge: string | null;
    },
  ) {}

  check(model: Readonly<Model>): boolean {
    const { merge } = this.what;
    return (
      model.handles.has(`${this.name} ${this.handle}`) &&
      (merge === null || (model.branches.get(merge)?.head ?? null) !== null)
    );
  }

  async run(model: Model, real: Real): Promise<void> {
    const { way, key, value, message, step, merge } = this.what;
    const at = `${this.name} ${this.handle}`;
    const { commit: base, moves } = model.handles.get(at)!;
    const state = way === "nothing" ? base.state : { ...base.state, [key]: value };
    const merged = merge === null ? base : model.branches.get(merge)!.head!;
    const parents = merged === base ? [base] : [base, merged];

    const options = {
      message,
      ...(step ? { step: { action: "read", record: { key } } as const } : {}),
      ...(merge === null ? {} : { mergeParents: [merge] }),
    };
    const handle = real.handles.get(at)!;
    const writing =
      way === "update"
        ? handle.update([{ op: "set", path: `/${key}`, value }], options)
        : handle.commit({ ...options, ...(way === "state" ? { state } : {}) });

    const needed =
      JSON.stringify(sorted(state)) !== JSON.stringify(sorted(base.state)) ||
      message !== "" ||
      step ||
      parents.length > 1;
    const branch = model.branches.get(this.name)!;
    if (!needed) {
      expect((await writing).id).toBe(base.id);
      return;
    }
    if (branch.head !== base) {
      await expect(writing).rejects.toThrow(
        agstateError("REF_CONFLICT", {
          ref: refOf(this.name),
          expected: base.id,
          actual: branch.head?.id ?? null,
        }),
      );
      expect(handle.head.id).toBe(base.id);
      return;
    }
    // Where the branch went away and came back, a handle of before may be refused, too.
    const outcome = await writing.catch((error: unknown) => error as Error);
    if (moves !== branch.moves && isAgstateError(outcome, "REF_CONFLICT")) return;
    if (outcome instanceof Error) throw outcome;
    const next = Math.max(branch.maxStep + 1, ...parents.map((parent) => parent.nextStep));
    const number = step ? next : null;
    const nextStep = step ? next + 1 : next;
    const commit: ModelCommit = { state, parents, message, step: number, nextStep, id: outcome.id };
    expect(handle.head).toMatchObject({
      id: commit.id,
      parents: parents.map((parent) => parent.id),
      message,
      step: number === null ? null : { number },
      nextStep,
    });
    branch.head = commit;
    branch.moves++;
    branch.maxStep = Math.max(branch.maxStep, number ?? 0);
    model.handles.set(at, { commit, moves: branch.moves });
  }

  toString = () => `write(${this.name}, handle ${this.handle}, ${JSON.stringify(this.what)})`;
}

function sorted(state: State): State {
  return Object.fromEntries(Object.entries(state).sort(([a], [b]) => (a < b ? -1 : 1)));
}

class Refresh implements Command {
  constructor(
    private readonly name: string,
    private readonly handle: number,
  ) {}

  check(model: Readonly<Model>): boolean {
    return model.handles.has(`${this.name} ${this.handle}`);
  }

  async run(model: Model, real: Real): Promise<void> {
    const at = `${this.name} ${this.handle}`;
    const { head, moves } = model.branches.get(this.name)!;
    const refreshed = real.handles.get(at)!.refresh();
    if (head === null) {
      await expect(refreshed).rejects.toThrow(agstateError("REF_NOT_FOUND"));
    } else {
      expect((await refreshed).id).toBe(head.id);
      model.handles.set(at, { commit: head, moves });
    }
  }

  toString = () => `refresh(${this.name}, handle ${this.handle})`;
}

class Delete implements Command {
  constructor(private readonly name: string) {}

  check(model: Readonly<Model>): boolean {
    return this.name !== "canonical" && model.branches.has(this.name);
  }

  async run(model: Model, real: Real): Promise<void> {
    const branch = model.branches.get(this.name)!;
    const deleted = real.workflows[0]!.deleteBranch(this.name);
    if (branch.head === null) {
      await expect(deleted).rejects.toThrow(agstateError("REF_NOT_FOUND"));
    } else {
      expect((await deleted).id).toBe(branch.head.id);
      branch.head = null;
      branch.moves++;
    }
  }

  toString = () => `delete(${this.name})`;
}

/** Compares everything that can be seen of a branch and of its handles. */
class Look implements Command {
  constructor(
    private readonly name: string,
    private readonly reader: number,
  ) {}

  check(model: Readonly<Model>): boolean {
    return model.branches.has(this.name);
  }

  async run(model: Model, real: Real): Promise<void> {
    const workflow = real.workflows[this.reader]!;
    const { head, moves, maxStep } = model.branches.get(this.name)!;
    for (const handle of [0, 1]) {
      const at = model.handles.get(`${this.name} ${handle}`)?.commit;
      if (at === undefined) continue;
      const branch = real.handles.get(`${this.name} ${handle}`)!;
      expect(branch.head.id).toBe(at.id);
      expect(await branch.state()).toEqual(at.state);
      const log = (await all(branch.log({ firstParent: true }))).map((commit) => commit.id);
      expect(log).toEqual(firstParents(at).map((commit) => commit.id));
    }
    expect((await workflow.reflog(this.name)).length).toBe(moves);
    const refs = new Map((await workflow.refs("refs/heads/")).map((ref) => [ref.name, ref]));
    expect(refs.get(refOf(this.name))?.id).toBe(head?.id);
    if (head === null) {
      await expect(workflow.resolve(this.name)).rejects.toThrow(agstateError("REVISION_NOT_FOUND"));
      return;
    }
    expect(refs.get(refOf(this.name))).toMatchObject({ seq: moves, maxStep });
    expect(await workflow.stateAt(this.name)).toEqual(head.state);
    const reached = (await all(workflow.log({ revisions: [this.name] }))).map((c) => c.id);
    expect(reached.length).toBe(new Set(reached).size);
    expect(new Set(reached)).toEqual(new Set([...reachable(head)].map((commit) => commit.id)));
    const base = model.branches.get("canonical")!.head!;
    const [ours, theirs] = [reachable(head), reachable(base)];
    expect(await workflow.aheadBehind(this.name, "canonical")).toEqual({
      ahead: [...ours].filter((commit) => !theirs.has(commit)).length,
      behind: [...theirs].filter((commit) => !ours.has(commit)).length,
    });
    const changed = new Set(
      (await workflow.diff("canonical", this.name)).map((c) => c.path.split("/")[1]),
    );
    const keys = new Set([...Object.keys(base.state), ...Object.keys(head.state)]);
    const differ = [...keys].filter(
      (key) => JSON.stringify(base.state[key]) !== JSON.stringify(head.state[key]),
    );
    expect([...changed].sort()).toEqual(differ.sort());
  }

  toString = () => `look(${this.name}, from store ${this.reader})`;
}

function firstParents(head: ModelCommit): ModelCommit[] {
  const line: ModelCommit[] = [];
  for (let at: ModelCommit | undefined = head; at !== undefined; at = at.parents[0]) line.push(at);
  return line;
}

const name = fc.constantFrom(...NAMES);
const handle = fc.nat(1);
const value: fc.Arbitrary<JsonValue> = fc.oneof(
  fc.nat(3),
  fc.constantFrom("x".repeat(2500), "y".repeat(2500)),
  fc.nat(120).map((n) => Array.from({ length: n }, (_, i) => `element ${i}`.padEnd(40, "."))),
);
const what = fc.record({
  way: fc.constantFrom(
    "state" as const,
    "state" as const,
    "update" as const,
    "update" as const,
    "nothing" as const,
  ),
  key: fc.constantFrom("k", "l", "m"),
  value,
  message: fc.constantFrom("", "", "said"),
  step: fc.boolean(),
  merge: fc.option(name, { freq: 4 }),
});

const commands = fc.commands(
  [
    fc.tuple(name, handle, name).map((args) => new Open(...args)),
    fc.tuple(name, handle, what).map((args) => new Write(...args)),
    fc.tuple(name, handle, what).map((args) => new Write(...args)),
    fc.tuple(name, handle, what).map((args) => new Write(...args)),
    fc.tuple(name, handle).map((args) => new Refresh(...args)),
    name.map((arg) => new Delete(arg)),
    fc.tuple(name, handle).map((args) => new Look(...args)),
  ],
  { maxCommands: 60, size: "max" },
);

async function begin(backend: Backend, url: string): Promise<{ model: Model; real: Real }> {
  const first = await openStore(url);
  // Two stores on the same data; the memory model is of one process and has one.
  const stores = backend === "memory" ? [first] : [first, await openStore(url)];
  const workflow = await first.createWorkflow("w", { state: { k: 0 } });
  const second = backend === "memory" ? await first.workflow("w") : await stores[1]!.workflow("w");
  const { head } = await workflow.canonical();
  const root: ModelCommit = {
    ...{ state: { k: 0 }, parents: [], message: "", step: null, nextStep: 1 },
    id: head.id,
  };
  const model: Model = {
    branches: new Map([["canonical", { head: root, moves: 1, maxStep: 0 }]]),
    handles: new Map(),
  };
  const real: Real = { stores, workflows: [workflow, second], handles: new Map() };
  for (const name of ["canonical", "a/x", "b/x"]) {
    for (const handle of [0, 1]) await new Open(name, handle, "canonical").run(model, real);
  }
  return { model, real };
}

describe.each(BACKENDS)("a workflow under random commands, on %s", (backend) => {
  it("does what plain maps do", async () => {
    const property = fc.asyncProperty(commands, async (sequence) => {
      const place = newPlace(backend);
      const { model, real } = await begin(backend, place.url);
      try {
        await fc.asyncModelRun(() => ({ model, real }), sequence);
        for (const one of model.branches.keys()) await new Look(one, 1).run(model, real);
        expect((await real.workflows[0]!.fsck()).problems).toEqual([]);
      } finally {
        for (const store of real.stores) await store.close();
        await place.remove();
      }
    });
    await fc.assert(property, {
      numRuns: backend === "memory" ? usually(75, 1500) : usually(15, 300),
    });
  });
});
