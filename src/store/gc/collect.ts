import { randomInt } from "node:crypto";
import { AgstateError, isAgstateError } from "../../core/errors.js";
import type { ObjectId } from "../../core/ids.js";
import { HOLDS } from "../../refs/names.js";
import type { ObjectType, Storage } from "../../storage/port.js";
import { recordEach } from "../audit/tally.js";
import type { Repository } from "../repository.js";
import { Marker } from "./marker.js";
import { type SweptPayloads, sweepPayloads } from "./payloads.js";

export interface GcOptions {
  /**
   * What was written, freshened, or let go of by a ref within this time stays, in milliseconds;
   * default the store's `graceMs`. With 0, whatever no ref reaches goes, and `undo` of what
   * was deleted or reset is over.
   */
  readonly graceMs?: number;
  /** Tells what would be removed, and removes nothing. */
  readonly dryRun?: boolean;
  /** Ends the collection early; what is removed by then stays removed. */
  readonly signal?: AbortSignal;
}

/** What a collection removed, or would remove. */
export interface GcReport {
  readonly workflow: string;
  readonly dryRun: boolean;
  readonly graceMs: number;
  readonly commits: number;
  readonly trees: number;
  readonly blobs: number;
  /** Bytes of the bodies of all these. */
  readonly bytes: number;
  /** Commits that stay. */
  readonly commitsKept: number;
  /** Those of them that would go if there were no holds. */
  readonly commitsHeld: number;
  /** What was to be removed and came into use meanwhile. */
  readonly spared: number;
  /** Of a workflow with parts in other regions: payloads there that no pointer stood for any more. */
  readonly payloads?: SweptPayloads;
}

/** How many rows one scan reads, and one transaction condemns or removes. */
const SCAN_PAGE = 5000;
const BATCH = 1000;
/** How many objects are condemned before what is reachable is looked at again. */
const ROUND_MAX = 100_000;
/** A collection that finds something missing looks again: only damage stays missing. */
const ATTEMPTS = 3;
/** Later than everything. */
const EVER = Number.MAX_SAFE_INTEGER;

interface Candidate {
  readonly id: ObjectId;
  readonly generation: number;
  readonly bytes: number;
}

/**
 * Removes what neither refs nor the logs of the grace period reach: commits first, children before
 * parents, then trees, then blobs, so that nothing that stays ever links to what is gone,
 * wherever the work is cut off. Run again, it goes on with what is left.
 *
 * It is safe beside any number of writers, whatever the grace period and their clocks: what is
 * to go is *condemned* first, then refs are read anew, or all commits for what is not one, and only
 * what they still do not reach is removed, if no write has freshened it since. A write that refers to a condemned row freshens
 * it; one that had referred to it before is seen in the refs. Of two collections at once, each
 * spares what the other has condemned last.
 *
 * @throws AgstateError `MISSING_OBJECT`, `CORRUPT_OBJECT` when what is reachable is damaged; nothing
 *   is removed then; `INVALID_ARGUMENT`
 */
export async function collectWorkflow(
  repository: Repository,
  options: GcOptions,
): Promise<GcReport> {
  const collection = new Collection(repository, options);
  for (let attempt = 1; ; attempt++) {
    try {
      const report = await collection.run();
      // What is gone is not answered from memory either.
      if (!report.dryRun && report.commits + report.trees + report.blobs > 0) {
        repository.context.forget();
      }
      await recordRemoved(repository, report);
      const payloads = report.dryRun ? null : await sweepPayloads(repository, report.graceMs);
      return payloads === null ? report : { ...report, payloads };
    } catch (error) {
      // Another collection may have removed what refs had reached when this one read them.
      if (isAgstateError(error, "MISSING_OBJECT") && attempt < ATTEMPTS) continue;
      // What is removed by then is gone.
      await recordRemoved(repository, collection.report());
      throw error;
    }
  }
}

/** Puts into the audit how much was removed, if anything was. */
async function recordRemoved(repository: Repository, report: GcReport): Promise<void> {
  const { commits, trees, blobs, bytes, commitsKept, commitsHeld, graceMs, dryRun } = report;
  if (dryRun || commits + trees + blobs === 0) return;
  await recordEach(repository, {
    kind: "collected",
    actor: "agstate",
    says: `gc: removed ${commits} commits, ${trees} trees, ${blobs} blobs`,
    facts: { commits, trees, blobs, bytes, commitsKept, commitsHeld, graceMs },
  });
}

class Collection {
  private readonly storage: Storage;
  private readonly workflow: string;
  private marker: Marker;
  private readonly graceMs: number;
  /** What logs say from here on is within the grace period, in milliseconds. */
  private readonly since: number;
  private readonly by = randomInt(1, 2 ** 48 - 1);
  private removed = { commit: 0, tree: 0, blob: 0, bytes: 0 };
  private spared = 0;
  private held = 0;

  constructor(
    repository: Repository,
    private readonly options: GcOptions,
  ) {
    const { storage, workflow, context } = repository;
    this.storage = storage;
    this.workflow = workflow;
    this.graceMs = options.graceMs ?? context.limits.graceMs;
    if (!Number.isSafeInteger(this.graceMs) || this.graceMs < 0) {
      throw new AgstateError(
        "INVALID_ARGUMENT",
        `graceMs is ${this.graceMs}; it must be a whole number of milliseconds, 0 or more`,
        { graceMs: this.graceMs },
      );
    }
    this.since = this.graceMs === 0 ? EVER : context.now() - this.graceMs;
    this.marker = new Marker(storage, workflow, options.signal);
  }

  /** Rows seen before this may go, in seconds; without a grace period, all. */
  private get before(): number {
    return this.graceMs === 0 ? EVER : Math.floor(this.since / 1000);
  }

  async run(): Promise<GcReport> {
    this.marker = new Marker(this.storage, this.workflow, this.options.signal);
    if (this.options.dryRun === true) this.removed = { commit: 0, tree: 0, blob: 0, bytes: 0 };
    await this.commits();
    await this.objects("tree");
    await this.objects("blob");
    return this.report();
  }

  /** What was done until now. */
  report(): GcReport {
    const { commit, tree, blob, bytes } = this.removed;
    return {
      workflow: this.workflow,
      dryRun: this.options.dryRun ?? false,
      graceMs: this.graceMs,
      commits: commit,
      trees: tree,
      blobs: blob,
      bytes,
      commitsKept: this.marker.commits,
      commitsHeld: this.held,
      spared: this.spared,
    };
  }

  /** Marks all that refs, and the logs of the grace period, reach now. */
  private async markRoots(spared: readonly ObjectId[] = []): Promise<void> {
    const { heads, holds, left } = await this.roots();
    await this.marker.mark([...heads, ...holds], [...left, ...spared]);
  }

  private async roots() {
    const refs = await this.storage.readRefs(this.workflow, { prefix: "refs/" });
    const left = await this.storage.readAbandoned(this.workflow, this.since);
    const heads: ObjectId[] = [];
    const holds: ObjectId[] = [];
    for (const { name, id } of refs) {
      if (id !== null) (name.startsWith(HOLDS) ? holds : heads).push(id);
    }
    return { heads, holds, left };
  }

  private async commits(): Promise<void> {
    const { heads, holds, left } = await this.roots();
    await this.marker.mark(heads, left);
    let candidates: Candidate[] = [];
    const young: ObjectId[] = [];
    for await (const { id, seenAt, generation, bytes } of this.scan("commit", EVER)) {
      if (this.marker.has(id)) continue;
      if (seenAt >= this.before) young.push(id);
      else candidates.push({ id, generation, bytes });
    }
    // What a commit of the grace period reaches stays with it.
    await this.marker.mark([], young);
    candidates = this.unmarked(candidates);
    // Holds come last, so that it is seen what nothing else keeps; their own commits do not count.
    const placed = new Set(holds);
    await this.marker.mark(holds);
    this.held = candidates.filter(({ id }) => this.marker.has(id) && !placed.has(id)).length;
    candidates.sort((a, b) => b.generation - a.generation || (a.id < b.id ? -1 : 1));
    candidates = await this.condemn(candidates, () => this.markRoots());
    if (!this.count("commit", candidates)) return;
    for (let at = 0; at < candidates.length; ) {
      const batch = candidates.slice(at, at + BATCH);
      const { spared } = await this.sweep(batch);
      if (spared.length === 0) {
        this.tally("commit", batch);
        at += BATCH;
      } else {
        // Somebody builds on one of them: with it stays all that it reaches.
        this.spared += spared.length;
        await this.markRoots(spared);
        candidates = this.unmarked(candidates.slice(at));
        at = 0;
      }
    }
  }

  private async objects(type: ObjectType): Promise<void> {
    let round: Candidate[] = [];
    const remove = async () => {
      const candidates = await this.condemn(round, () => this.markAll());
      round = [];
      if (!this.count(type, candidates)) return;
      for (let at = 0; at < candidates.length; at += BATCH) {
        const batch = candidates.slice(at, at + BATCH);
        const spared = new Set((await this.sweep(batch)).spared);
        this.tally(
          type,
          batch.filter(({ id }) => !spared.has(id)),
        );
        this.spared += spared.size;
      }
    };
    for await (const row of this.scan(type, this.before)) {
      if (this.marker.has(row.id)) continue;
      round.push(row);
      if (round.length >= ROUND_MAX) await remove();
    }
    await remove();
  }

  /**
   * Marks what every commit reaches that is there now: one that came and was left again since commits
   * were collected is unreachable, but somebody may go back to it.
   */
  private async markAll(): Promise<void> {
    const unmarked: ObjectId[] = [];
    for await (const { id } of this.scan("commit", EVER)) {
      if (!this.marker.has(id)) unmarked.push(id);
    }
    await this.marker.mark([], unmarked);
  }

  /** Condemns candidates, and answers those that are not marked when all is marked anew. */
  private async condemn(
    candidates: readonly Candidate[],
    mark: () => Promise<void>,
  ): Promise<Candidate[]> {
    const left = this.unmarked(candidates);
    if (left.length === 0 || this.options.dryRun === true) return left;
    for (let at = 0; at < left.length; at += BATCH) {
      this.options.signal?.throwIfAborted();
      const ids = left.slice(at, at + BATCH).map(({ id }) => id);
      await this.storage.condemn(this.workflow, ids, this.before, this.by);
    }
    await mark();
    return this.unmarked(left);
  }

  private unmarked(candidates: readonly Candidate[]): Candidate[] {
    return candidates.filter(({ id }) => !this.marker.has(id));
  }

  private sweep(batch: readonly Candidate[]) {
    this.options.signal?.throwIfAborted();
    const ids = batch.map(({ id }) => id);
    return this.storage.sweep(this.workflow, ids, this.by);
  }

  /** Whether there is anything to remove; of a dry run everything is counted and nothing is. */
  private count(type: ObjectType | "commit", candidates: readonly Candidate[]): boolean {
    if (this.options.dryRun === true) this.tally(type, candidates);
    return this.options.dryRun !== true;
  }

  private tally(type: ObjectType | "commit", rows: readonly Candidate[]): void {
    this.removed[type] += rows.length;
    for (const { bytes } of rows) this.removed.bytes += bytes;
  }

  private async *scan(type: ObjectType | "commit", before: number) {
    for (let after: string | null = null; ; ) {
      this.options.signal?.throwIfAborted();
      const page = await this.storage.scanSeen(this.workflow, type, before, after, SCAN_PAGE);
      yield* page.rows;
      after = page.next;
      if (after === null) return;
    }
  }
}
