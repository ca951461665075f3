import { isAgstateError } from "../../core/errors.js";
import { IdSet } from "../../core/id-set.js";
import { isObjectId, type ObjectId } from "../../core/ids.js";
import { readTraceparent } from "../../core/traceparent.js";
import { isWithheld } from "../../core/withheld.js";
import { type CommitStep, decodeCommit } from "../../objects/commit.js";
import { type LoadedCommit, loadCommit } from "../../objects/commit-reader.js";
import { hasId } from "../../objects/hash.js";
import { shortRefName } from "../../refs/names.js";
import type { StepRecord } from "../../steps/record.js";
import type { CommitRecord } from "../../storage/port.js";
import type { Repository } from "../repository.js";
import { RETENTION_REF } from "../retention/records.js";
import { recordOrWithheld } from "../steps/read.js";
import type { Claim } from "./claim.js";
import type { Finder } from "./finder.js";

const PAGE = 1000;

/** The span in which a commit was written. */
export interface Traceparent {
  readonly traceId: string;
  readonly spanId: string;
  readonly sampled: boolean;
}

/** What is known of a commit that a span names. */
export interface Fact {
  readonly id: ObjectId;
  readonly parents: readonly ObjectId[];
  readonly generation: number;
  readonly step: CommitStep | undefined;
  /** Of a step's record what spans tell as well; null where it is not told. */
  readonly record: Pick<StepRecord, "name" | "attempt" | "place"> | null;
  /** Undefined where it has none, or one that cannot be read, which binds it to no span. */
  readonly trace: Traceparent | undefined;
  /** Whether it has any. */
  readonly hasTrace: boolean;
}

/** The commits of a workflow, as far as spans are concerned. */
export interface TracedCommits {
  /** Ids that spans name, of commits or not. */
  readonly named: ReadonlySet<string>;
  /** Those that spans name. */
  readonly facts: ReadonlyMap<string, Fact>;
  /** Those that no span names, though their traces are sampled and among the spans. */
  readonly unnamed: readonly Pick<Fact, "id" | "trace" | "generation">[];
  /** Of those that spans name, the ones that a stored commit or a ref stands on. */
  readonly needed: ReadonlyMap<string, string>;
  /** Whose bytes are not what their ids say. */
  readonly corrupt: ReadonlySet<string>;
  /** Whether some commit seals the step of a claim that names none, or may have done so. */
  isSealed(claim: Claim): boolean;
}

/**
 * Goes through all commits of a workflow, a page at a time, and remembers those that spans name, or that owe one.
 *
 * Of the others no more is looked at than whether a trace of theirs is among the spans: that costs a search in the bytes.
 */
export async function readTracedCommits(
  repository: Repository,
  claims: readonly Claim[],
  traces: ReadonlySet<string>,
  finder: Finder,
): Promise<TracedCommits> {
  const { storage, workflow } = repository;
  const reading = new Reading(repository, claims, traces, finder);
  const { named } = reading;
  // Before the commits: what refs lead to is there then, whatever is written meanwhile.
  for (const { id, name } of await storage.readRefs(workflow, { prefix: "refs/" })) {
    if (id === null) continue;
    reading.living.add(shortRefName(name));
    if (named.has(id)) reading.needed.set(id, name);
  }
  for (let after: string | null = null; ; ) {
    const page = await storage.scanCommits(workflow, after, PAGE);
    await reading.take(page.rows);
    after = page.next;
    if (after === null) break;
  }
  await reading.takeLate();
  return reading;
}

class Reading implements TracedCommits {
  readonly facts = new Map<string, Fact>();
  readonly unnamed: Pick<Fact, "id" | "trace" | "generation">[] = [];
  readonly needed = new Map<string, string>();
  readonly corrupt = new Set<string>();
  readonly named = new Set<string>();
  /** Short names of the refs that there are. */
  readonly living = new Set<string>();
  readonly #seen = new IdSet();
  /** Numbers of steps whose seals are not named, and those that are found of them, with their keys. */
  readonly #numbers = new Set<number>();
  readonly #seals = new Set<string>();

  constructor(
    private readonly repository: Repository,
    claims: readonly Claim[],
    private readonly traces: ReadonlySet<string>,
    private readonly finder: Finder,
  ) {
    for (const { of, commit, base, sources = [], success, seq } of claims) {
      for (const source of sources) this.named.add(source);
      if (commit !== undefined) this.named.add(commit);
      if (base !== undefined) this.named.add(base);
      if (of === "step" && success === true && commit === undefined && seq !== undefined)
        this.#numbers.add(seq);
    }
  }

  isSealed({ seq, key, branch }: Claim): boolean {
    if (this.#seals.has(sealOf(seq, key))) return true;
    // What became of it may have gone with its branch, or with old history.
    return !this.living.has(branch ?? "") || this.living.has(shortRefName(RETENTION_REF));
  }

  async take(rows: readonly CommitRecord[]): Promise<void> {
    const wanted: CommitRecord[] = [];
    for (const row of rows) {
      for (const parent of row.parents) {
        if (this.named.has(parent)) this.needed.set(parent, `commit ${row.id}`);
      }
      if (this.#numbers.size > 0) this.seal(row);
      const isNamed = this.named.has(row.id);
      const trace = traceOf(row);
      const owes = trace?.sampled === true && this.traces.has(trace.traceId);
      if (!isNamed && !owes) continue;
      if (!this.#seen.add(row.id)) continue;
      if (!hasId("commit", row.body, row.id)) this.damaged(row.id);
      else if (isNamed) wanted.push(row);
      else this.unnamed.push({ id: row.id, trace, generation: row.generation });
    }
    for (const row of wanted) this.facts.set(row.id, await this.fact(row));
  }

  /** Those that were written while the scan was under way. */
  async takeLate(): Promise<void> {
    const { storage, workflow } = this.repository;
    const ids = [...this.named].filter(
      (id): id is ObjectId => isObjectId(id) && !this.facts.has(id) && !this.corrupt.has(id),
    );
    for (let at = 0; at < ids.length; at += PAGE) {
      const rows = await storage.readCommits(workflow, ids.slice(at, at + PAGE));
      await this.take(rows.filter((row) => row !== undefined));
    }
  }

  /** Looks whether a commit seals a step that is asked for. */
  private seal({ body, id }: CommitRecord): void {
    if (headerIn(body, STEP) === undefined) return;
    const { step } = decodeCommit(body, id);
    if (step === undefined || step.status === "started" || !this.#numbers.has(step.number)) return;
    this.#seals.add(sealOf(step.number, step.key));
  }

  private damaged(id: ObjectId): void {
    this.corrupt.add(id);
    this.finder.problem("corrupt-commit", {
      workflow: this.repository.workflow,
      commit: id,
      detail: "its bytes are not what its id says",
      remedy: "run agstate fsck to see what it affects, and restore it",
    });
  }

  private async fact(row: CommitRecord): Promise<Fact> {
    const commit = loadCommit(row, this.repository.opener);
    const { id, parents, generation, step, trace } = commit;
    return {
      id,
      parents,
      generation,
      step,
      record: await this.record(commit),
      trace: trace === undefined ? undefined : traceIn(trace),
      hasTrace: trace !== undefined,
    };
  }

  private async record(commit: LoadedCommit): Promise<Fact["record"]> {
    if (commit.step === undefined) return null;
    try {
      const record = await recordOrWithheld(commit, this.repository.objectsOf(commit));
      if (record === null || isWithheld(record)) return null;
      const { name, attempt, place } = record;
      return { name, attempt, ...(place && { place }) };
    } catch (error) {
      // What is missing or damaged in it is for fsck to tell; what is withheld is not told.
      if (!isAgstateError(error)) throw error;
      return null;
    }
  }
}

const TRACE = Buffer.from("\nagstate-trace ");
const STEP = Buffer.from("\nagstate-step ");

function traceOf({ body }: CommitRecord): Traceparent | undefined {
  const text = headerIn(body, TRACE);
  return text === undefined ? undefined : traceIn(text);
}

/** The value of a commit's header, found without reading the rest. */
function headerIn(body: Uint8Array, header: Buffer): string | undefined {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const at = bytes.indexOf(header);
  if (at < 0 || at > bytes.indexOf("\n\n")) return undefined;
  const from = at + header.length;
  return bytes.toString("latin1", from, bytes.indexOf("\n", from));
}

function sealOf(seq: number | undefined, key: string | undefined): string {
  return `${seq} ${key ?? ""}`;
}

const SAMPLED = 1;

function traceIn(text: string): Traceparent | undefined {
  const read = readTraceparent(text);
  if (read === null) return undefined;
  const { traceId, spanId, flags } = read;
  return { traceId, spanId, sampled: (flags & SAMPLED) !== 0 };
}
