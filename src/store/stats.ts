import { IdNumbers } from "../core/id-numbers.js";
import type { ObjectId } from "../core/ids.js";
import { loadCommit, ROOT_PARTS } from "../objects/commit-reader.js";
import type { Link } from "../objects/encode.js";
import { decodeRecord } from "../objects/reader.js";
import { parseAgentRef } from "../refs/names.js";
import { BRANCHES, type SeenRow, type Usage } from "../storage/port.js";
import { GroupSets } from "./group-sets.js";
import type { Repository } from "./repository.js";
import { EVER, StoredCommits } from "./retention/commits.js";

/** Commits and objects, and the bytes of their bodies. */
export interface Share {
  readonly commits: number;
  readonly objects: number;
  readonly bytes: number;
}

/** How much an agent's branches reach. */
export interface AgentStats {
  /** The agent; null of canonical. */
  readonly agent: string | null;
  readonly branches: number;
  /** What only these branches reach, of all refs: it would go with them. */
  readonly own: Share;
  /** What they reach, and other refs reach too. */
  readonly shared: Share;
}

export interface WorkflowStats {
  readonly workflow: string;
  /** All that is stored. */
  readonly total: Usage;
  /** Canonical, then agents by name. */
  readonly agents: readonly AgentStats[];
  /** What refs reach that are no branches, and no branch does: tags, holds, reviews, the audit and the like. */
  readonly others: Share;
  /** What no ref reaches: collection and its grace period decide on it. */
  readonly unreached: Share;
}

const COMMITS_PAGE = 1000;
const TREES_PAGE = 500;
const SCAN_PAGE = 5000;

type Counting = { -readonly [Key in keyof Share]: Share[Key] };

/**
 * Counts what each agent's branches reach of what is stored, alone and with others: who reaches a commit is who reaches
 * one of its children, and who reaches an object who reaches a commit or tree that links to it. Blobs are not read. What is
 * in a commit's row counts as its commit's bytes.
 */
export async function workflowStats(repository: Repository): Promise<WorkflowStats> {
  const { storage, workflow } = repository;
  const groups = new Map<string | null, ObjectId[]>();
  const others: ObjectId[] = [];
  for (const { name, id } of await repository.refs.list()) {
    if (!name.startsWith(BRANCHES)) others.push(id as ObjectId);
    else {
      const agent = parseAgentRef(name)?.agent ?? null;
      groups.set(agent, [...(groups.get(agent) ?? []), id as ObjectId]);
    }
  }
  // By name, canonical first; all other refs are one more group.
  const agents = [...groups].sort(([a], [b]) =>
    a === null ? -1 : b === null ? 1 : a < b ? -1 : 1,
  );
  const reach = new Reach(repository, await StoredCommits.read(repository, { marks: false }));
  await reach.go([...agents.map(([, heads]) => heads), others]);
  const totals = await reach.totals();
  const sum = (of: (groups: ReadonlySet<number>) => boolean): Share => {
    const share: Counting = { commits: 0, objects: 0, bytes: 0 };
    for (const [set, count] of totals) {
      if (!of(reach.sets.members(set))) continue;
      share.commits += count.commits;
      share.objects += count.objects;
      share.bytes += count.bytes;
    }
    return share;
  };
  return {
    workflow,
    total: await storage.usage(workflow),
    agents: agents.map(([agent, heads], group) => ({
      agent,
      branches: heads.length,
      own: sum((set) => set.size === 1 && set.has(group)),
      shared: sum((set) => set.size > 1 && set.has(group)),
    })),
    others: sum((set) => set.size === 1 && set.has(agents.length)),
    unreached: sum((set) => set.size === 0),
  };
}

/** Which groups of refs reach what. */
class Reach {
  readonly sets = new GroupSets();
  readonly #ofCommit: number[] = [];
  readonly #objects = new IdNumbers();
  readonly #ofObject: number[] = [];

  constructor(
    private readonly repository: Repository,
    private readonly commits: StoredCommits,
  ) {}

  async go(groups: readonly (readonly ObjectId[])[]): Promise<void> {
    const { commits, sets } = this;
    const rising = [...commits.rising()];
    groups.forEach((heads, group) => {
      for (const n of commits.stored(heads)) this.#addToCommit(n, sets.of(group));
    });
    for (const n of rising.toReversed()) {
      const set = this.#ofCommit[n] ?? sets.none;
      for (const parent of commits.facts(n).parents) this.#addToCommit(parent, set);
    }
    // Those that most reach come first: what others add to is then mostly known.
    for (let at = 0; at < rising.length; at += COMMITS_PAGE) {
      await this.#readCommits(rising.slice(at, at + COMMITS_PAGE));
    }
  }

  /** Counts all rows by who reaches them. */
  async totals(): Promise<ReadonlyMap<number, Share>> {
    const totals = new Map<number, Counting>();
    for (const type of ["commit", "tree", "blob"] as const) {
      for await (const { id, bytes, erased } of this.#scan(type)) {
        const numbers = type === "commit" ? this.commits.ids : this.#objects;
        const sets = type === "commit" ? this.#ofCommit : this.#ofObject;
        const set = sets[numbers.find(id)] ?? this.sets.none;
        const count = totals.get(set) ?? { commits: 0, objects: 0, bytes: 0 };
        count[type === "commit" ? "commits" : "objects"]++;
        if (!erased) count.bytes += bytes;
        totals.set(set, count);
      }
    }
    return totals;
  }

  #addToCommit(commit: number, set: number): void {
    this.#ofCommit[commit] = this.sets.union(this.#ofCommit[commit] ?? this.sets.none, set);
  }

  async #readCommits(numbers: readonly number[]): Promise<void> {
    const { storage, workflow, opener } = this.repository;
    const ids = numbers.map((n) => this.commits.ids.id(n));
    const trees: [ObjectId, number][] = [];
    const records = await storage.readCommits(workflow, ids);
    records.forEach((record, i) => {
      const set = this.#ofCommit[numbers[i] as number];
      if (record === undefined || set === undefined) return;
      const { root, inline } = loadCommit(record, opener);
      const waiting: (Link | undefined)[] = ROOT_PARTS.map((part) => root[part]);
      for (const link of waiting) {
        if (link === undefined) continue;
        const own = inline.get(link.id);
        if (own === undefined) this.#meet(link, set, trees);
        else if (own.type === "tree") waiting.push(...own.entries);
      }
    });
    await this.#readTrees(trees);
  }

  #meet({ id, type }: Link, set: number, trees: [ObjectId, number][]): void {
    const number = this.#objects.number(id);
    const before = this.#ofObject[number] ?? this.sets.none;
    const after = this.sets.union(before, set);
    if (after === before) return;
    this.#ofObject[number] = after;
    if (type === "tree") trees.push([id, set]);
  }

  async #readTrees(trees: [ObjectId, number][]): Promise<void> {
    const { storage, workflow } = this.repository;
    while (trees.length > 0) {
      const page = trees.splice(-TREES_PAGE);
      const objects = await storage.readObjects(
        workflow,
        page.map(([id]) => id),
      );
      objects.forEach((object, i) => {
        // What is lost is for fsck to tell.
        const decoded = object && decodeRecord(object);
        if (decoded?.type !== "tree") return;
        for (const entry of decoded.entries) {
          this.#meet(entry, (page[i] as [ObjectId, number])[1], trees);
        }
      });
    }
  }

  async *#scan(type: SeenRow["type"]): AsyncGenerator<SeenRow> {
    const { storage, workflow } = this.repository;
    for (let after: string | null = null; ; ) {
      const page = await storage.scanSeen(workflow, type, EVER, after, SCAN_PAGE);
      yield* page.rows;
      after = page.next;
      if (after === null) return;
    }
  }
}
