import type { ObjectId } from "../../core/ids.js";
import { BRANCHES, type Redacted } from "../../storage/port.js";
import type { Repository } from "../repository.js";
import { bury } from "./bury.js";
import { type Erasure, noteOf, receiptOf, recordErasure } from "./erasure.js";
import { knownExports } from "./exports.js";
import { cleanHeads, MERGES } from "./heads.js";
import { Kept } from "./held.js";
import { Needles } from "./needles.js";
import { Living } from "./reach.js";
import { kindOf, leftBefore } from "./record.js";
import { checkRequest, refuseTelling, soughtOf } from "./request.js";
import { residueOf } from "./residue.js";
import { type Sought, type Survey, survey } from "./survey.js";
import type { ErasedHead, EraseReport, EraseRequest, Residue } from "./types.js";
import { eraseWhole } from "./whole.js";

/** How often all is looked through again when writers bring back what was taken out. */
const ROUNDS = 3;

/** What of a survey goes, and what stays for which reason. */
interface Sorted {
  readonly goes: Map<ObjectId, "blob" | "tree">;
  readonly held: readonly ObjectId[];
  readonly shared: readonly ObjectId[];
  /** Trees that are left because their keys are kept. */
  readonly keys: readonly ObjectId[];
  readonly residue: readonly Residue[];
}

/**
 * Takes something out of all of a workflow's history. Heads first: branches go on without it, on top of what they were. Then
 * every object that holds it becomes a tombstone, copies in commits' rows included, so that ids and links still verify; then
 * pending rows go. What a hold reaches stays, and is told. It may be run again at any time, and ends what a killed run
 * began.
 *
 * @param subjects paths at which subjects' values stand, as the workflow declares them
 * @throws AgstateError `INVALID_ARGUMENT`, `INVALID_PATH`, `INVALID_NAME`, `INVALID_VALUE`; `HELD` for a whole workflow of
 *   which a part is held; `REF_CONFLICT` when branches are moved by others all the time; `STORE_READONLY`; `MISSING_OBJECT`,
 *   `CORRUPT_OBJECT` for a damaged store
 */
export async function erase(
  repository: Repository,
  request: EraseRequest,
  subjects: readonly string[],
): Promise<EraseReport> {
  const { context } = repository;
  const checked = checkRequest(request);
  const erasure: Erasure = {
    ...checked,
    id: context.randomHex(8),
    at: context.now(),
    salt: context.randomHex(16),
  };
  refuseTelling(checked, new Needles());
  if ("workflow" in checked.target) return eraseWhole(repository, erasure, request);
  const before = await leftBefore(repository, checked.target);
  const objects = new Set<string>([...before, ...(request.objects ?? [])]);
  const sought = soughtOf(repository, checked.target, subjects, objects);
  const run = new Run(repository, erasure, sought, request);
  return request.dryRun === true ? run.look() : run.erase();
}

class Run {
  private readonly needles = new Needles();
  private readonly heads: ErasedHead[] = [];
  private readonly done = { objects: 0, inline: 0, grafts: 0, pending: 0, bytes: 0 };
  private readonly taken = new Set<ObjectId>();

  constructor(
    private readonly repository: Repository,
    private readonly erasure: Erasure,
    private readonly sought: Sought,
    private readonly request: EraseRequest,
  ) {}

  /** Tells what would be done. */
  async look(): Promise<EraseReport> {
    const seen = await this.survey();
    const sorted = await this.sort(seen, false);
    const inline = [...seen.inline.values()].flat().filter((id) => sorted.goes.has(id));
    const stored = [...seen.stored].filter(([id]) => sorted.goes.has(id));
    this.done.objects = stored.length;
    this.done.inline = inline.length;
    this.done.pending = seen.pending.length;
    this.done.bytes = stored.reduce((sum, [, bytes]) => sum + bytes, 0);
    return this.report(seen, sorted);
  }

  async erase(): Promise<EraseReport> {
    const { repository, erasure } = this;
    const first = await this.survey();
    refuseTelling(erasure, this.needles);
    const planned = [...(await this.sort(first, false)).goes.keys()];
    await this.giveReceipt(planned);
    await this.record("requested", planned);
    try {
      let seen = first;
      let sorted = await this.round(seen);
      for (let round = 1; ; round++) {
        // Again, since writers may have brought something back meanwhile, or had it under way.
        seen = await this.survey();
        sorted = await this.sort(seen, true);
        if (sorted.goes.size === 0 && seen.pending.length === 0) break;
        if (round >= ROUNDS) break;
        sorted = await this.round(seen);
      }
      const report = await this.report(seen, sorted);
      const left = [...sorted.held, ...sorted.keys, ...sorted.goes.keys()];
      await this.record(report.status, left, report);
      await this.giveReceipt([...this.taken, ...left]);
      return report;
    } catch (error) {
      await this.record("failed", planned, undefined, error).catch(() => undefined);
      throw error;
    } finally {
      // What is gone is not answered from memory either.
      repository.context.forget();
    }
  }

  private survey(): Promise<Survey> {
    return survey(this.repository, this.sought, this.needles);
  }

  /** Heads, then objects and rows; answers what stays. */
  private async round(seen: Survey): Promise<Sorted> {
    const { repository, erasure, needles } = this;
    const { id, by } = erasure;
    const { paths } = this.sought;
    this.heads.push(
      ...(await cleanHeads(repository, { id, by, found: seen.found, paths, needles })),
    );
    const sorted = await this.sort(seen, true);
    const burial = { objects: sorted.goes, inline: seen.inline, pending: seen.pending };
    this.tally(await bury(repository, burial, noteOf(erasure)));
    for (const gone of sorted.goes.keys()) this.taken.add(gone);
    repository.context.forget();
    return sorted;
  }

  private tally(redacted: Redacted): void {
    for (const key of ["objects", "inline", "pending", "bytes"] as const) {
      this.done[key] += redacted[key];
    }
  }

  /** @param cleaned whether heads are free of it, so that whatever they reach is not to go */
  private async sort({ found }: Survey, cleaned: boolean): Promise<Sorted> {
    const { repository, erasure } = this;
    const goes = new Map<ObjectId, "blob" | "tree">();
    const held: ObjectId[] = [];
    const shared: ObjectId[] = [];
    const keys: ObjectId[] = [];
    const residue: Residue[] = [];
    if (found.size === 0) return { goes, held, shared, keys, residue };
    const kept = await Kept.read(repository);
    const living = new Living(repository.objects);
    const closed = await isClosed(repository);
    for (const prefix of [BRANCHES, MERGES]) {
      const rows = await repository.refs.list(prefix);
      const commits = await repository.commits.readAll(rows.map(({ id }) => id as ObjectId));
      // Of heads that keep it, because they are not cleaned yet or their workflow is completed, what is at the paths does not count.
      for (const commit of commits) {
        await living.add(commit, undefined, cleaned && !closed ? undefined : this.sought.paths);
      }
    }
    for (const [id, { type, as }] of found) {
      if (erasure.keepKeys && type === "tree") {
        if (as !== "key") continue;
        keys.push(id);
        residue.push(residueOf("key", id));
      } else if (kept.isAudit(id)) residue.push(residueOf("audit", id));
      else if (kept.isHeld(id)) held.push(id);
      else if (living.has(id) && !found.goesAnywhere(id)) {
        if (type === "blob") shared.push(id);
      } else if (living.has(id) && cleaned && !closed) {
        // Somebody has brought it back to a head since that was cleaned: the next round cleans it first.
      } else goes.set(id, type);
    }
    return { goes, held, shared, keys, residue };
  }

  private async report(seen: Survey, sorted: Sorted): Promise<EraseReport> {
    const { repository, erasure, request } = this;
    const dryRun = request.dryRun === true;
    const kept = await Kept.read(repository);
    const residue = [...seen.residue, ...sorted.residue];
    const open = !dryRun && (sorted.goes.size > 0 || seen.pending.length > 0);
    const whole = !open && sorted.held.length === 0 && residue.length === 0 && seen.unread === 0;
    return {
      workflow: repository.workflow,
      id: erasure.id,
      kind: kindOf(erasure.target),
      dryRun,
      status: whole ? "done" : "partial",
      heads: this.heads,
      objects: this.done.objects,
      inline: this.done.inline,
      pending: this.done.pending,
      bytes: this.done.bytes,
      held: kept.count(sorted.held),
      shared: sorted.shared,
      unread: seen.unread,
      residue,
      exports: await knownExports(repository),
    };
  }

  private record(
    status: "requested" | "done" | "partial" | "failed",
    objects: readonly ObjectId[],
    report?: EraseReport,
    error?: unknown,
  ): Promise<void> {
    return recordErasure(this.repository, this.erasure, status, objects, report, error);
  }

  private async giveReceipt(objects: readonly ObjectId[]): Promise<void> {
    await this.request.onReceipt?.(receiptOf(this.repository, this.erasure, objects));
  }
}

/** Whether the workflow is completed, so that its branches take no commit. */
async function isClosed({ storage, workflow }: Repository): Promise<boolean> {
  return (await storage.readWorkflow(workflow))?.completedAt != null;
}
