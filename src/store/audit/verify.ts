import { isAgstateError } from "../../core/errors.js";
import { type ObjectId, ZERO_ID } from "../../core/ids.js";
import { decodeCommit } from "../../objects/commit.js";
import { decodeValue } from "../../objects/decode.js";
import { hashObject } from "../../objects/hash.js";
import { createObjectCache, ObjectReader } from "../../objects/reader.js";
import { CANONICAL_REF, GENESIS_REF } from "../../refs/names.js";
import type { CommitRecord, RefRow, StoredReflogEntry } from "../../storage/port.js";
import { checkCount } from "../read.js";
import { chainOf } from "../reflog-chain.js";
import type { Repository } from "../repository.js";
import { type BoundaryRecord, recordedBoundaries, rowProblem } from "../retention/records.js";
import { type CheckpointStatement, refused, verifyAuditCheckpoint } from "./checkpoint.js";

export interface VerifyAuditOptions {
  /** Holds the logs against what was signed before: the checkpoint's text or bytes, and the signer's public key (PEM, SPKI). */
  readonly checkpoint?: { readonly document: string | Uint8Array; readonly publicKey: string };
  /** By how much an entry's time may lie before that of the one before it, or after now, in milliseconds; default 5,000. */
  readonly toleranceMs?: number;
}

/** Something in the logs that is not as it was written. */
export interface AuditProblem {
  readonly kind: /** An entry is lost, changed or out of its place. */
    | "bad-log"
    /** A ref that every workflow has is not there, or one points to what is not stored. */
    | "bad-ref"
    /** A commit, or the record in it, is not what its id says, or its row says otherwise. */
    | "bad-commit"
    /** Against a checkpoint: a ref is gone with its log. */
    | "vanished"
    /** Against a checkpoint: a log ends before where it stood. */
    | "rolled-back"
    /** Against a checkpoint: a log has another entry where it stood, though its chain is whole. */
    | "rewritten";
  /** The ref, by full name, or the commit. */
  readonly subject: string;
  readonly detail: string;
}

/** Something that happens without anybody's doing, and may be worth a look. */
export interface AuditNotice {
  readonly kind: "time";
  readonly subject: string;
  readonly detail: string;
}

export interface AuditReport {
  readonly workflow: string;
  /** Deleted ones included. */
  readonly refs: number;
  readonly entries: number;
  readonly commits: number;
  readonly problems: readonly AuditProblem[];
  readonly notices: readonly AuditNotice[];
  /** The checkpoint that the logs were held against; null without one. */
  readonly checkpoint: { readonly date: Date; readonly refs: number } | null;
}

const TOLERANCE_MS = 5_000;
const PAGE = 1000;
const CACHE_MAX_BYTES = 8 * 1024 * 1024;

/** Refs whose commits are records of a layer, that nobody reads every day. */
const RECORDS = /^refs\/(?:audit|reviews)\//;

/**
 * Checks that what is on record is what was written: every ref's chain of log entries from its row to its first entry,
 * deleted refs included; every commit against its id, and what its row says; records of reviews and events; and, against a
 * signed checkpoint, that nothing which it vouches for was made anew, taken away or put back.
 *
 * @throws AgstateError `CHECKPOINT_REFUSED` when the checkpoint is changed, or of another store or workflow; `INVALID_ARGUMENT`
 */
export async function verifyAudit(
  repository: Repository,
  options: VerifyAuditOptions = {},
): Promise<AuditReport> {
  return new Verification(repository, options).run();
}

class Verification {
  private readonly problems: AuditProblem[] = [];
  private readonly notices: AuditNotice[] = [];
  private readonly tolerance: number;
  private readonly now: number;
  private readonly stored = new Set<ObjectId>();
  /** Commits whose parents were dropped, as is on record. */
  private boundaries: ReadonlyMap<string, BoundaryRecord> = new Map();
  private entries = 0;
  /** With a cache of its own: what is in memory says nothing of what is stored. */
  private readonly objects: ObjectReader;

  constructor(
    private readonly repository: Repository,
    private readonly options: VerifyAuditOptions,
  ) {
    this.tolerance = checkCount("toleranceMs", options.toleranceMs ?? TOLERANCE_MS);
    this.now = repository.context.now();
    const { storage, workflow } = repository;
    this.objects = new ObjectReader(storage, workflow, createObjectCache(CACHE_MAX_BYTES));
  }

  async run(): Promise<AuditReport> {
    const { storage, workflow } = this.repository;
    const statement = await this.statement();
    const signed = new Map((statement?.refs ?? []).map((ref) => [ref.name, ref]));
    this.boundaries = await recordedBoundaries(this.repository);
    // Before the commits: what refs lead to is there then, whatever is written meanwhile.
    const rows = await storage.readRefs(workflow, { prefix: "refs/", deleted: true });
    for (let after: string | null = null; ; ) {
      const page = await storage.scanCommits(workflow, after, PAGE);
      for (const record of page.rows) this.commit(record);
      after = page.next;
      if (after === null) break;
    }
    for (const row of rows) {
      await this.ref(row, signed.get(row.name));
      signed.delete(row.name);
    }
    for (const { name, seq } of signed.values()) {
      this.report(
        "vanished",
        name,
        `the checkpoint knows its log up to entry ${seq}; there is no such ref`,
      );
    }
    for (const name of [GENESIS_REF, CANONICAL_REF]) {
      if (!rows.some((row) => row.name === name && row.id !== null)) {
        this.report("bad-ref", name, "it is not there, and every workflow has it");
      }
    }
    return {
      workflow,
      refs: rows.length,
      entries: this.entries,
      commits: this.stored.size,
      problems: this.problems,
      notices: this.notices,
      checkpoint: statement && { date: new Date(statement.time), refs: statement.refs.length },
    };
  }

  private async statement(): Promise<CheckpointStatement | null> {
    const { checkpoint } = this.options;
    if (checkpoint === undefined) return null;
    const statement = verifyAuditCheckpoint(checkpoint.document, checkpoint.publicKey);
    const { storage, workflow } = this.repository;
    const { storeId } = await storage.describe();
    if (statement.store !== storeId) {
      throw refused("store", `it is of store ${statement.store}, and this is ${storeId}`);
    }
    if (statement.workflow !== workflow) {
      throw refused("workflow", `it is of workflow ${JSON.stringify(statement.workflow)}`);
    }
    return statement;
  }

  private report(kind: AuditProblem["kind"], subject: string, detail: string): void {
    this.problems.push({ kind, subject, detail });
  }

  /** What is in a commit's row, the record of its step included. */
  private commit(record: CommitRecord): void {
    const { id } = record;
    this.stored.add(id);
    const problem = (detail: string) => this.report("bad-commit", id, detail);
    const actual = hashObject("commit", record.body);
    if (actual !== id) {
      problem(`its bytes hash to ${actual}`);
      return;
    }
    for (const object of record.inline) {
      if ("tombstone" in object) continue;
      const is = hashObject(object.type, object.body);
      if (is !== object.id) problem(`${object.type} ${object.id} in its row hashes to ${is}`);
    }
    try {
      const fields = decodeCommit(record.body, id);
      if (fields.committerTime !== record.time) problem("its row has another date");
      const wrong = rowProblem(fields, record, this.boundaries.get(id));
      if (wrong !== undefined) problem(wrong);
      if ((fields.externalId ?? null) !== record.externalId)
        problem("its row has another external id");
    } catch (error) {
      problem(messageOf(error));
    }
  }

  private async ref(row: RefRow, signed: CheckpointStatement["refs"][number] | undefined) {
    const { name } = row;
    const problem = (detail: string) => this.report("bad-log", name, detail);
    if (row.id !== null && !this.stored.has(row.id)) {
      this.report("bad-ref", name, `points to ${row.id}, which is not stored`);
    }
    if (signed !== undefined && row.seq < signed.seq) {
      this.report(
        "rolled-back",
        name,
        `its log ends with entry ${row.seq}, and had ${signed.seq} when the checkpoint was signed`,
      );
    }
    let later: StoredReflogEntry | undefined;
    for await (const { entry, actual } of chainOf(this.repository, row, problem)) {
      this.entries++;
      if (
        entry.incarnation !==
        (later === undefined || later.old === ZERO_ID ? entry : later).incarnation
      ) {
        problem(`entry ${entry.seq} is of another incarnation than the one after it`);
      }
      if (later === undefined && row.incarnation !== entry.incarnation) {
        problem(`its row is of another incarnation than entry ${entry.seq}`);
      }
      if (signed?.seq === entry.seq && signed.log !== actual) {
        this.report(
          "rewritten",
          name,
          `entry ${entry.seq} hashes to ${actual}; when the checkpoint was signed, to ${signed.log}`,
        );
      }
      this.times(entry, later);
      if (RECORDS.test(name) && entry.new !== ZERO_ID) await this.record(entry.new);
      later = entry;
    }
  }

  private times(entry: StoredReflogEntry, later: StoredReflogEntry | undefined): void {
    const { ref, seq, time } = entry;
    const back = later === undefined ? 0 : time - later.time;
    if (back > this.tolerance) {
      this.notices.push({
        kind: "time",
        subject: ref,
        detail: `entry ${seq + 1} is dated ${back} ms before entry ${seq}: a clock was wrong`,
      });
    }
    if (time - this.now > this.tolerance) {
      const detail = `entry ${seq} is dated ${time - this.now} ms from now: a clock is wrong`;
      this.notices.push({ kind: "time", subject: ref, detail });
    }
  }

  /** Reads the record that a commit is for: its bytes are checked on the way. */
  private async record(id: ObjectId): Promise<void> {
    // A damaged one is told of; one that was collected, after its ref was deleted, is not missed.
    if (!this.stored.has(id) || this.problems.some(({ subject }) => subject === id)) return;
    const { storage, workflow } = this.repository;
    try {
      const [record] = await storage.readCommits(workflow, [id]);
      if (record === undefined) return;
      const commit = this.repository.commits.load(record);
      const link = commit.root.state;
      if (link !== undefined) await decodeValue(this.objects.with(commit.inline), link);
    } catch (error) {
      // What was erased on purpose is not damaged.
      if (!isAgstateError(error, "ERASED", "WITHHELD"))
        this.report("bad-commit", id, messageOf(error));
    }
  }
}

function messageOf(error: unknown): string {
  if (isAgstateError(error)) return error.message;
  throw error;
}
