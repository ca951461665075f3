import { randomInt } from "node:crypto";
import type { ObjectId } from "../../core/ids.js";
import type { JsonObject, JsonValue } from "../../core/json.js";
import { canonicalText } from "../../objects/canonical.js";
import { ROOT_PARTS } from "../../objects/commit-reader.js";
import type { TombstoneRecord } from "../../storage/port.js";
import { appendRecord } from "../audit/record.js";
import type { Repository } from "../repository.js";
import { EVER } from "./commits.js";
import type { Inlined } from "./layers.js";
import { notRecorded } from "./not-recorded.js";
import type { RetentionPlan } from "./plan.js";
import { RETENTION_RECORD_VERSION, RETENTION_REF } from "./records.js";
import { readRoots } from "./roots.js";
import type { RetentionOptions } from "./types.js";

/** How many rows one transaction condemns, and how many it makes tombstones of. */
const BATCH = 1000;
/** How many are condemned before what refs reach is looked at again. */
const ROUND_MAX = 100_000;

/** What became of payload whose time was over. */
export interface Expired {
  readonly objects: number;
  readonly inline: number;
  readonly bytes: number;
  /** What came into use meanwhile, and stays. */
  readonly spared: number;
}

/**
 * Makes tombstones of payload that is over, in small transactions, beside any writers.
 *
 * As collection does, it condemns rows first, so that writes which send or build on them freshen them; then it reads refs
 * anew, and takes what is still condemned and still not reached. What links to something goes after that, so that
 * another run finds all that is left when this one is cut off.
 *
 * A ref that is moved to an old commit while that one's payload goes is as if it had been moved afterwards.
 *
 * @throws AgstateError `REF_CONFLICT` when others write the record all the time
 */
export async function expire(
  repository: Repository,
  plan: RetentionPlan,
  options: RetentionOptions,
): Promise<Expired> {
  const { blobs, trees, inline } = plan.report.payload ?? { blobs: 0, trees: 0, inline: 0 };
  if (blobs + trees + inline === 0) return { objects: 0, inline: 0, bytes: 0, spared: 0 };
  return new Expiry(repository, plan, options).run();
}

class Expiry {
  private readonly by = randomInt(1, 2 ** 48 - 1);
  private readonly actor: string;
  private readonly seen: Set<ObjectId>;
  private done = { objects: 0, inline: 0, bytes: 0 };
  private spared = 0;

  constructor(
    private readonly repository: Repository,
    private readonly plan: RetentionPlan,
    private readonly options: RetentionOptions,
  ) {
    this.actor = options.actor ?? "agstate";
    this.seen = new Set(allOf(plan.roots));
  }

  async run(): Promise<Expired> {
    const { layers } = this.plan;
    const tombstone = this.tombstone(await this.record("begun"));
    // From the last met on: each was met by way of one that was met before.
    const numbers = layers.numbersOf("expired").reverse();
    await this.expireRows(tombstone);
    for (let at = 0; at < numbers.length; at += ROUND_MAX) {
      await this.round(numbers.slice(at, at + ROUND_MAX), tombstone);
    }
    await this.record("done");
    this.repository.context.forget();
    return { ...this.done, spared: this.spared };
  }

  /** Small records in commits' rows. */
  private async expireRows(tombstone: Buffer): Promise<void> {
    const { layers } = this.plan;
    const rows = [...layers.inline];
    await this.condemn(rows.map(([commit]) => commit));
    await this.condemn(rows.flatMap(([, own]) => own.map(({ id }) => id)));
    await this.protect();
    for (let at = 0; at < rows.length; at += BATCH) {
      this.options.signal?.throwIfAborted();
      const batch = rows.slice(at, at + BATCH);
      const over = new Map<ObjectId, Inlined>();
      for (const [, own] of batch) {
        for (const one of own) if (layers.layerOf(one.id) === "expired") over.set(one.id, one);
      }
      const tombstones = [...over.values()].map(({ id, type }) => ({ id, type, tombstone }));
      await this.redact(
        tombstones,
        batch.map(([commit]) => commit),
      );
    }
  }

  private async round(numbers: readonly number[], tombstone: Buffer): Promise<void> {
    const { layers } = this.plan;
    await this.condemn(numbers.map((n) => layers.ids.id(n)));
    await this.protect();
    const left = numbers.filter((n) => layers.layerAt(n) === "expired");
    this.spared += numbers.length - left.length;
    for (let at = 0; at < left.length; at += BATCH) {
      this.options.signal?.throwIfAborted();
      const batch = left.slice(at, at + BATCH);
      const tombstones = batch.map((n): TombstoneRecord => {
        return { id: layers.ids.id(n), type: layers.typeAt(n), tombstone };
      });
      await this.redact(tombstones, []);
    }
  }

  private async redact(
    tombstones: readonly TombstoneRecord[],
    inline: readonly ObjectId[],
  ): Promise<void> {
    if (tombstones.length === 0) return;
    const { storage, workflow } = this.repository;
    const redaction = { tombstones, inline, grafts: [], condemnedBy: this.by };
    const redacted = await storage.redact(workflow, redaction);
    this.done.objects += redacted.objects;
    this.done.inline += redacted.inline;
    this.done.bytes += redacted.bytes;
  }

  private async condemn(ids: readonly ObjectId[]): Promise<void> {
    const { storage, workflow } = this.repository;
    for (let at = 0; at < ids.length; at += BATCH) {
      this.options.signal?.throwIfAborted();
      await storage.condemn(workflow, ids.slice(at, at + BATCH), EVER, this.by);
    }
  }

  /** Marks what has come to be reached since it was looked at: by refs that moved, and by the commits that came with that. */
  private async protect(): Promise<void> {
    const { repository, seen } = this;
    const { commits, layers } = this.plan;
    const roots = await readRoots(repository);
    const young: ObjectId[] = [];
    const waiting = allOf(roots).filter((id) => !seen.has(id));
    const held = new Set(roots.holds);
    for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
      if (seen.has(id)) continue;
      seen.add(id);
      young.push(id);
      const n = commits.ids.find(id);
      const isNew = n < 0 || !commits.has(n);
      if (!isNew && !held.has(id)) continue;
      for (const parent of (await repository.commits.read(id)).parents) {
        // A hold keeps all that it reaches; of other new commits those count that are new as well.
        if (held.has(id)) held.add(parent);
        const known = commits.ids.find(parent);
        if (held.has(parent) || known < 0 || !commits.has(known)) waiting.push(parent);
      }
    }
    await layers.mark(young, "young", ROOT_PARTS);
  }

  private tombstone(record: ObjectId): Buffer {
    const { policy } = this.plan;
    const at = this.repository.context.now();
    return Buffer.from(canonicalText({ reason: "expired", policy, by: this.actor, at, record }));
  }

  private async record(status: "begun" | "done"): Promise<ObjectId> {
    const { repository, plan, actor } = this;
    const { payload } = plan.report;
    const begun = status === "begun";
    const { blobs = 0, trees = 0, inline = 0, bytes = 0 } = payload ?? {};
    const counts: Record<string, JsonValue> = begun
      ? { commits: payload?.commits ?? 0, objects: blobs + trees, inline, bytes }
      : { ...this.done, spared: this.spared };
    const held = payload?.kept.holds;
    if (held !== undefined) counts.held = held.blobs + held.trees;
    const value: JsonObject = {
      v: RETENTION_RECORD_VERSION,
      kind: "payload",
      status,
      policy: plan.policy,
      at: repository.context.now(),
      before: payload?.before.toISOString() ?? null,
      counts,
      ...(begun && { runs: this.runs() }),
    };
    const words = begun ? "expire" : "expired";
    const message = `retention: ${words} payload of before ${value.before}`;
    const id = await appendRecord(repository, RETENTION_REF, { value, actor, message });
    if (id === null) throw notRecorded(repository.workflow);
    return id;
  }

  /** Where runs began and ended, as their steps' records do not tell any more. */
  private runs(): JsonValue {
    const { commits, between, payloadBefore } = this.plan;
    const open = new Set(between.open);
    const marks: JsonValue[] = [];
    for (const [n, mark] of commits.marks) {
      if (mark === null || open.has(n) || commits.recorded.has(n)) continue;
      if (commits.facts(n).time >= (payloadBefore as number)) continue;
      marks.push({ commit: commits.ids.id(n), ...mark });
    }
    return marks;
  }
}

function allOf({ audit, branches, merges, tags, holds, others }: RetentionPlan["roots"]) {
  return [...audit, ...branches, ...merges, ...tags, ...holds, ...others];
}
