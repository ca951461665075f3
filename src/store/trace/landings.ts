import { isAgstateError } from "../../core/errors.js";
import { type ObjectId, ZERO_ID } from "../../core/ids.js";
import {
  BRANCHES,
  type GraphNode,
  type RefRow,
  type StoredReflogEntry,
} from "../../storage/port.js";
import type { Repository } from "../repository.js";
import type { TracedCommits } from "./commits.js";

const PAGE = 1000;

/** A move by which a commit came to a ref, as the ref's log tells. */
export interface Landing {
  /** The commit that it led to, which is the last of those that came with it. */
  readonly commit: ObjectId;
  readonly ref: string;
  readonly incarnation: string;
  /** Milliseconds since the Unix epoch, by the mover's clock. */
  readonly time: number;
  /** Whether it went by itself on top of where the ref was, and was not at hand there already, as where a branch is begun. */
  readonly appended: boolean;
}

/** Where commits landed, by the logs of refs, which stay when a ref is deleted and when history is dropped. */
export class Landings {
  readonly #rows = new Map<string, RefRow>();
  readonly #read = new Set<string>();
  readonly #found = new Map<string, Landing[]>();
  readonly #gone = new Map<string, readonly Landing[]>();

  constructor(
    private readonly repository: Repository,
    private readonly commits: TracedCommits,
  ) {}

  /** Learns of the refs that there are or were. */
  async prepare(): Promise<void> {
    const { storage, workflow } = this.repository;
    const rows = await storage.readRefs(workflow, { prefix: "refs/", deleted: true });
    for (const row of rows) this.#rows.set(row.name, row);
  }

  /** The ref that a span's branch names; undefined where there never was one. */
  refOf(branch: string): string | undefined {
    const names = [BRANCHES + branch, `refs/${branch}`, branch, `${BRANCHES}agents/${branch}`];
    return names.find((name) => this.#rows.has(name));
  }

  /** The moves that led a ref to a commit. */
  async at(ref: string, commit: string): Promise<Landing[]> {
    await this.readDirect(ref);
    return (this.#found.get(commit) ?? []).filter((landing) => landing.ref === ref);
  }

  /** The moves that led any branch to a commit. */
  async anywhere(commit: string): Promise<readonly Landing[]> {
    for (const ref of this.#rows.keys()) if (ref.startsWith(BRANCHES)) await this.readDirect(ref);
    return this.#found.get(commit) ?? [];
  }

  /** The moves that brought commits to a ref together with others above them, by commit. */
  async within(ref: string, commits: ReadonlySet<string>): Promise<Map<string, Landing>> {
    const found = new Map<string, Landing>();
    const sought = new Set(commits);
    let floor = Number.POSITIVE_INFINITY;
    for (const id of sought) floor = Math.min(floor, this.commits.facts.get(id)?.generation ?? 1);
    for await (const page of this.log(ref)) {
      if (sought.size === 0) break;
      const nodes = await this.nodes(page.flatMap((entry) => [entry.old, entry.new]));
      for (const entry of page) {
        const tip = nodes.get(entry.new);
        if (tip === undefined || tip.parents[0] === entry.old) continue;
        const least = Math.max(floor, (nodes.get(entry.old)?.generation ?? 0) + 1);
        for await (const { id, generation } of this.line(tip.id)) {
          if (sought.size === 0 || id === entry.old || generation < least) break;
          if (!sought.delete(id)) continue;
          found.set(id, landingBy(entry, false));
        }
      }
    }
    return found;
  }

  /** Moves of a ref to commits that are not stored any more. */
  async gone(ref: string): Promise<readonly Landing[]> {
    const known = this.#gone.get(ref);
    if (known !== undefined) return known;
    const gone: Landing[] = [];
    for await (const page of this.log(ref)) {
      const nodes = await this.nodes(page.map((entry) => entry.new));
      for (const entry of page) {
        if (entry.new !== ZERO_ID && !nodes.has(entry.new)) gone.push(landingBy(entry, true));
      }
    }
    this.#gone.set(ref, gone);
    return gone;
  }

  private async readDirect(ref: string): Promise<void> {
    if (this.#read.has(ref)) return;
    this.#read.add(ref);
    for await (const page of this.log(ref)) {
      for (const entry of page) {
        if (!this.commits.named.has(entry.new)) continue;
        const parent = this.commits.facts.get(entry.new)?.parents[0] ?? ZERO_ID;
        const landing = landingBy(entry, parent === entry.old);
        const before = this.#found.get(entry.new);
        if (before === undefined) this.#found.set(entry.new, [landing]);
        else before.push(landing);
      }
    }
  }

  private async *log(ref: string): AsyncGenerator<readonly StoredReflogEntry[], void, undefined> {
    const { storage, workflow } = this.repository;
    let seq = this.#rows.get(ref)?.seq ?? 0;
    while (seq > 0) {
      const page = await storage.readReflog(workflow, ref, { limit: PAGE, fromSeq: seq });
      if (page.length === 0) return;
      yield page;
      seq = (page.at(-1) as StoredReflogEntry).seq - 1;
    }
  }

  private async nodes(ids: readonly ObjectId[]): Promise<Map<string, GraphNode>> {
    const distinct = [...new Set(ids)].filter((id) => id !== ZERO_ID);
    if (distinct.length === 0) return new Map();
    const { storage, workflow } = this.repository;
    const nodes = await storage.readGraph(workflow, distinct, distinct.length);
    return new Map(nodes.map((node) => [node.id, node]));
  }

  /** A line of first parents, as far as it is stored. */
  private async *line(tip: ObjectId): AsyncGenerator<GraphNode, void, undefined> {
    try {
      yield* this.repository.history.firstParentWalk(tip);
    } catch (error) {
      if (!isAgstateError(error, "MISSING_OBJECT")) throw error;
    }
  }
}

function landingBy(entry: StoredReflogEntry, appended: boolean): Landing {
  const { ref, incarnation, time } = entry;
  return { commit: entry.new, ref, incarnation, time, appended };
}
