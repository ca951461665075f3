import { AgstateError } from "../../core/errors.js";
import { parseRetention, type RetentionPolicy, retentionText } from "../../core/period.js";
import { ROOT_PARTS } from "../../objects/commit-reader.js";
import type { Repository } from "../repository.js";
import { type Between, standBetween } from "./between.js";
import { EVER, StoredCommits } from "./commits.js";
import { cutoffOf } from "./cutoff.js";
import { type Layer, ObjectLayers } from "./layers.js";
import { mergeNeeds } from "./merge-needs.js";
import { pendingOfDropped } from "./pending.js";
import { type Roots, readRoots } from "./roots.js";
import { NO_THINNING, planThinning, type Thinning, type ThinningNeeds } from "./thinning.js";
import {
  type HistoryReport,
  KEEPERS,
  type Kept,
  type PayloadReport,
  type RetentionOptions,
  type RetentionReport,
  type Tally,
} from "./types.js";

/** What of a commit is payload: not its merge policies, which are rules. */
const PAYLOAD_PARTS = ROOT_PARTS.filter((part) => part !== "policy");

/** What is going to be done, as far as it was known when it was looked at. */
export interface RetentionPlan {
  readonly policy: string;
  /** Cut-offs in seconds; null where the policy has no such period. */
  readonly payloadBefore: number | null;
  readonly historyBefore: number | null;
  readonly roots: Roots;
  readonly commits: StoredCommits;
  readonly thinning: Thinning;
  readonly between: Between;
  readonly layers: ObjectLayers;
  readonly report: RetentionReport;
}

/**
 * Looks what retention would take away: history first, then payload of the commits that stay. Nothing is changed.
 *
 * @throws AgstateError `INVALID_ARGUMENT` without a policy; `MISSING_OBJECT`, `CORRUPT_OBJECT` when what is in use is
 *   damaged
 */
export async function planRetention(
  repository: Repository,
  declared: string | null,
  options: RetentionOptions,
): Promise<RetentionPlan> {
  const { workflow, storage, context } = repository;
  const policy = policyOf(workflow, declared, options);
  const now = context.now();
  const payloadBefore = policy.payload === undefined ? null : cutoffOf(policy.payload, now);
  // Months and years differ in length: history is never over before payload is.
  const historyBefore =
    policy.history === undefined
      ? null
      : Math.min(cutoffOf(policy.history, now), payloadBefore ?? Number.POSITIVE_INFINITY);
  const graceMs = graceOf(repository, options);
  const commits = await StoredCommits.read(repository, { signal: options.signal });
  const roots = await readRoots(repository);
  const left = await storage.readAbandoned(workflow, graceMs === 0 ? EVER : now - graceMs);
  const needs = await mergeNeeds(repository, roots.merges);
  const heads = commits.stored(roots.branches);
  const between = standBetween(commits, heads, commits.stored(needs.tips));
  const kept = { roots, left, needs, between };
  const thinning =
    historyBefore === null ? NO_THINNING : planThinning(commits, kept, historyBefore);
  const layers = new ObjectLayers(repository, options.signal);
  const expired = await markLayers({ commits, thinning, layers, ...kept }, payloadBefore);
  const tally = await layers.tally();
  const facts = { commits, thinning, layers, tally };
  const report: RetentionReport = {
    workflow,
    dryRun: true,
    policy: retentionText(policy),
    payload: payloadBefore === null ? null : payloadReport(facts, payloadBefore, expired),
    history: historyBefore === null ? null : await historyReport(repository, facts, historyBefore),
    holds: roots.holdNames,
    spared: 0,
  };
  return {
    policy: retentionText(policy),
    payloadBefore,
    historyBefore,
    roots,
    commits,
    thinning,
    between,
    layers,
    report,
  };
}

/** The grace period of what a ref left, as of collection. */
export function graceOf({ context }: Repository, { graceMs }: RetentionOptions): number {
  const given = graceMs ?? context.limits.graceMs;
  if (Number.isSafeInteger(given) && given >= 0) return given;
  throw new AgstateError(
    "INVALID_ARGUMENT",
    `graceMs is ${given}; it must be a whole number of milliseconds, 0 or more`,
    { graceMs: given },
  );
}

function policyOf(
  workflow: string,
  declared: string | null,
  { policy }: RetentionOptions,
): RetentionPolicy {
  const given = policy ?? declared;
  if (given !== null) return parseRetention(given);
  throw new AgstateError(
    "INVALID_ARGUMENT",
    `workflow ${workflow} declares no retention, so nothing of it is ever over; give periods with --payload and --history`,
    { workflow },
  );
}

/** Marks what commits reach, layer by layer; answers how many commits' payload is over. */
async function markLayers(
  facts: Pick<RetentionPlan, "commits" | "thinning" | "layers"> & ThinningNeeds,
  before: number | null,
): Promise<number> {
  const { commits, roots, thinning, layers, needs, between } = facts;
  const audit = commits.reached(commits.stored(roots.audit));
  const held = commits.reached(commits.stored(roots.holds));
  const idsOf = (numbers: readonly number[]) => numbers.map((n) => commits.ids.id(n));
  const [young, expired, holds]: [number[], number[], number[]] = [[], [], []];
  for (const n of commits.rising()) {
    if (held.get(n) === 1) holds.push(n);
    if (thinning.isDropped(n)) continue;
    const isOver = before !== null && commits.facts(n).time < before && audit.get(n) === 0;
    (isOver ? expired : young).push(n);
  }
  await layers.mark(idsOf(young), "young", ROOT_PARTS);
  await layers.mark(roots.branches, "branches", ROOT_PARTS);
  // Records of steps are all that they need: what a run goes on from is the branch's head.
  await layers.mark(idsOf(between.open), "runs", ["step"]);
  await layers.mark(needs.commits, "merges", ROOT_PARTS);
  await layers.mark(roots.others, "refs", ROOT_PARTS);
  await layers.mark(roots.tags, "tags", ROOT_PARTS);
  await layers.mark(idsOf(holds), "holds", ROOT_PARTS);
  await layers.mark(idsOf(expired), "expired", PAYLOAD_PARTS);
  await layers.mark(idsOf(thinning.dropped), "dropped", ROOT_PARTS);
  return expired.length;
}

interface Counted {
  readonly commits: StoredCommits;
  readonly thinning: Thinning;
  readonly layers: ObjectLayers;
  readonly tally: ReadonlyMap<Layer, Tally>;
}

const NOTHING: Tally = { blobs: 0, trees: 0, bytes: 0 };

function payloadReport({ layers, tally }: Counted, before: number, commits: number): PayloadReport {
  const { blobs, trees, bytes } = tally.get("expired") ?? NOTHING;
  const inline = inlineOver(layers);
  const kept: { -readonly [By in keyof Kept<Tally>]: Kept<Tally>[By] } = {};
  for (const keeper of KEEPERS) {
    const count = tally.get(keeper);
    if (count !== undefined) kept[keeper] = count;
  }
  return {
    before: dateOf(before),
    commits,
    blobs,
    trees,
    inline: inline.count,
    bytes: bytes + inline.bytes,
    kept,
  };
}

/** What commits' rows hold that only payload which is over reaches. */
function inlineOver(layers: ObjectLayers): { count: number; bytes: number } {
  let [count, bytes] = [0, 0];
  for (const own of layers.inline.values()) {
    for (const object of own) {
      if (layers.layerOf(object.id) !== "expired") continue;
      count++;
      bytes += object.bytes;
    }
  }
  return { count, bytes };
}

async function historyReport(
  repository: Repository,
  { commits, thinning, tally }: Counted,
  before: number,
): Promise<HistoryReport> {
  const { storage, workflow } = repository;
  const { blobs, trees, bytes } = tally.get("dropped") ?? NOTHING;
  let rowBytes = 0;
  for (let after: string | null = null; ; ) {
    const page = await storage.scanSeen(workflow, "commit", EVER, after, 5000);
    for (const row of page.rows) {
      const n = commits.ids.find(row.id);
      if (n >= 0 && thinning.isDropped(n)) rowBytes += row.bytes;
    }
    after = page.next;
    if (after === null) break;
  }
  const times = thinning.dropped.map((n) => commits.facts(n).time);
  const dateIf = (time: number) => (times.length === 0 ? null : dateOf(time));
  return {
    before: dateOf(before),
    commits: thinning.dropped.length,
    boundaries: thinning.boundaries.length,
    oldest: dateIf(times.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY)),
    newest: dateIf(times.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY)),
    blobs,
    trees,
    bytes: bytes + rowBytes,
    pending: (await pendingOfDropped(repository, commits, thinning)).rows,
    kept: thinning.kept,
    removed: null,
  };
}

/** The earliest date there is stands for what is before all dates. */
function dateOf(seconds: number): Date {
  return new Date(Math.max(seconds * 1000, -8_640_000_000_000_000));
}
