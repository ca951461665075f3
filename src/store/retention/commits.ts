import { AgstateError, isAgstateError } from "../../core/errors.js";
import { ByteColumn, IdNumbers } from "../../core/id-numbers.js";
import type { ObjectId } from "../../core/ids.js";
import { type LoadedCommit, loadCommit } from "../../objects/commit-reader.js";
import { decodeAt } from "../../objects/decode.js";
import type { Repository } from "../repository.js";
import { RUN_BEGINS, RUN_ENDS } from "../steps/read.js";
import { type RunMark, recordedRuns } from "./records.js";

const PAGE = 1000;
/** Later than everything. */
export const EVER = Number.MAX_SAFE_INTEGER;

/** Which run begins or ends with a commit; null for one that cannot be read, and so may be any. */
export type Mark = Omit<RunMark, "commit"> | null;

/** A commit's row, as far as it matters what becomes of it. */
export interface CommitFacts {
  readonly generation: number;
  readonly time: number;
  /** By number, as its row has them. */
  readonly parents: readonly number[];
  readonly externalId: string | null;
}

/**
 * All commits of a workflow that are stored, reached or not, by number.
 *
 * It holds some 200 bytes a commit, and reads each row once, with its step's name where it may be that of a run's
 * beginning or end.
 */
export class StoredCommits {
  readonly ids = new IdNumbers();
  readonly #facts: CommitFacts[] = [];
  /** Numbers of steps that commits begin and do not end. */
  readonly started = new Map<number, number>();
  /** Of commits that have some: the steps that were begun and not ended. */
  readonly inFlight = new Map<number, ReadonlySet<number>>();
  readonly marks = new Map<number, Mark>();
  /** Those whose marks records of retention tell of, as they do not themselves. */
  readonly recorded = new Set<number>();
  readonly #stored = new ByteColumn();

  private constructor() {}

  /** @param marks whether to look for the beginnings and ends of runs; default true */
  static async read(
    repository: Repository,
    { signal, marks = true }: { signal?: AbortSignal | undefined; marks?: boolean } = {},
  ): Promise<StoredCommits> {
    const { storage, workflow } = repository;
    const commits = new StoredCommits();
    const known = marks ? await recordedRuns(repository) : [];
    const recorded = marks ? new Map(known.map((mark) => [mark.commit, mark])) : undefined;
    for (let after: string | null = null; ; ) {
      signal?.throwIfAborted();
      const page = await storage.scanSeen(workflow, "commit", EVER, after, PAGE);
      await commits.readRows(
        repository,
        page.rows.map(({ id }) => id),
        recorded,
      );
      after = page.next;
      if (after === null) return commits;
    }
  }

  /** Numbers of the commits that are stored, parents before children. */
  *rising(): Generator<number> {
    const numbers = Array.from({ length: this.ids.size }, (_, n) => n).filter((n) => this.has(n));
    yield* numbers.sort((a, b) => this.facts(a).generation - this.facts(b).generation);
  }

  has(number: number): boolean {
    return this.#stored.get(number) === 1;
  }

  /** @throws AgstateError `MISSING_OBJECT` */
  facts(number: number): CommitFacts {
    if (!this.has(number)) throw missing(this.ids.id(number));
    return this.#facts[number] as CommitFacts;
  }

  /** Numbers of those of some commits that are stored. */
  stored(ids: readonly ObjectId[]): number[] {
    return ids.map((id) => this.ids.find(id)).filter((n) => n >= 0 && this.has(n));
  }

  /** Marks commits and all that they reach with 1. */
  reached(from: readonly number[]): ByteColumn {
    const reached = new ByteColumn();
    const waiting = [...from];
    for (let n = waiting.pop(); n !== undefined; n = waiting.pop()) {
      if (reached.get(n) === 1) continue;
      reached.set(n, 1);
      waiting.push(...this.facts(n).parents);
    }
    return reached;
  }

  private async readRows(
    repository: Repository,
    ids: readonly ObjectId[],
    recorded: ReadonlyMap<ObjectId, RunMark> | undefined,
  ): Promise<void> {
    const { storage, workflow, opener } = repository;
    for (const record of await storage.readCommits(workflow, ids)) {
      // Collected since the page was read.
      if (record === undefined) continue;
      const { id, generation, time, parents, externalId } = record;
      const number = this.ids.number(id);
      this.#stored.set(number, 1);
      this.#facts[number] = {
        generation,
        time,
        parents: parents.map((parent) => this.ids.number(parent)),
        externalId,
      };
      if (recorded === undefined) continue;
      const commit = loadCommit(record, opener);
      if (commit.inFlight.length > 0) this.inFlight.set(number, new Set(commit.inFlight));
      if (commit.step?.status === "started") this.started.set(number, commit.step.number);
      const known = recorded.get(id);
      if (known !== undefined) this.recorded.add(number);
      const mark = known === undefined ? await markOf(repository, commit) : markIn(known);
      if (mark !== undefined) this.marks.set(number, mark);
    }
  }
}

function markIn({ run, mark }: RunMark): Mark {
  return { run, mark };
}

/** Which run begins or ends with a commit, as its step's record tells; undefined where none does. */
async function markOf(repository: Repository, commit: LoadedCommit): Promise<Mark | undefined> {
  const { step, root } = commit;
  if (step === undefined || root.step === undefined) return undefined;
  // Only such steps are marks; others need not be looked at.
  if (step.action !== "read" || step.status !== "completed" || step.key !== undefined) return;
  const link = root.step;
  const objects = repository.objectsOf(commit);
  const part = (path: readonly string[]) => decodeAt(objects, link, path);
  try {
    const name = await part(["name"]);
    if (name !== RUN_BEGINS && name !== RUN_ENDS) return undefined;
    const run = await part(["place", "run"]);
    if (typeof run !== "string") return undefined;
    return { run, mark: name === RUN_BEGINS ? "begins" : "ends" };
  } catch (error) {
    // Erased, with whatever it was.
    if (isAgstateError(error, "ERASED")) return undefined;
    if (isAgstateError(error, "WITHHELD")) return null;
    throw error;
  }
}

function missing(id: ObjectId): AgstateError {
  return new AgstateError(
    "MISSING_OBJECT",
    `nothing is taken away: commit ${id} is in use and not in the store; run agstate fsck, and restore it`,
    { id },
  );
}
