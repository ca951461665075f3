import type { ObjectId } from "../../core/ids.js";
import type { JsonObject } from "../../core/json.js";
import { appendRecord } from "../audit/record.js";
import { collectWorkflow, type GcReport } from "../gc/collect.js";
import type { Repository } from "../repository.js";
import { notRecorded } from "./not-recorded.js";
import { pendingOfDropped } from "./pending.js";
import { graceOf, type RetentionPlan } from "./plan.js";
import { RETENTION_RECORD_VERSION, RETENTION_REF, recordedBoundaries } from "./records.js";
import { readRoots } from "./roots.js";
import type { RetentionOptions } from "./types.js";

/** How many commits one transaction cuts, and how many prefixes one drops. */
const BATCH = 500;

/**
 * Drops history: first it is recorded what goes, then the commits that stay are cut from their parents, then collection
 * removes what nothing reaches any more. Cut off anywhere, it is gone on with when it is run again.
 *
 * @returns what was collected; null when refs came to reach what was to be dropped, so that it has to be planned anew
 * @throws AgstateError `REF_CONFLICT` when others write the record all the time
 */
export async function thin(
  repository: Repository,
  plan: RetentionPlan,
  options: RetentionOptions,
): Promise<GcReport | null> {
  const { storage, workflow, context, refs } = repository;
  const { commits, thinning } = plan;
  const actor = options.actor ?? "agstate";
  if (thinning.boundaries.length > 0) {
    await record(repository, plan, actor);
    if (await reachDropped(repository, plan)) return null;
    for (let at = 0; at < thinning.boundaries.length; at += BATCH) {
      options.signal?.throwIfAborted();
      const grafts = thinning.boundaries
        .slice(at, at + BATCH)
        .map((n) => ({ id: commits.ids.id(n), parents: [] }));
      await storage.redact(workflow, { tombstones: [], inline: [], grafts });
    }
    // What is cut is not followed from memory either.
    context.commitCache.clear();
    repository.history.forget();
  }
  const { prefixes } = await pendingOfDropped(repository, commits, thinning);
  for (let at = 0; at < prefixes.length; at += BATCH) {
    await refs.apply({ updates: [], dropPending: prefixes.slice(at, at + BATCH) });
  }
  return collectWorkflow(repository, {
    graceMs: graceOf(repository, options),
    ...(options.signal && { signal: options.signal }),
  });
}

/** Commits what is going to be dropped. */
async function record(repository: Repository, plan: RetentionPlan, actor: string): Promise<void> {
  const { commits, thinning, policy } = plan;
  const { history } = plan.report;
  const idsOf = (numbers: readonly number[]) => numbers.map((n) => commits.ids.id(n));
  const runs = await runsBelow(repository, plan);
  const boundaries: Record<ObjectId, JsonObject> = {};
  for (const n of thinning.boundaries) {
    const { parents } = commits.facts(n);
    boundaries[commits.ids.id(n)] = { parents: idsOf(parents), runs: runs(parents[0]) };
  }
  const count = thinning.dropped.length;
  const value: JsonObject = {
    v: RETENTION_RECORD_VERSION,
    kind: "history",
    status: "begun",
    policy,
    at: repository.context.now(),
    before: history?.before.toISOString() ?? null,
    counts: {
      commits: count,
      boundaries: thinning.boundaries.length,
      held: history?.kept.holds ?? 0,
      oldest: history?.oldest?.toISOString() ?? null,
      newest: history?.newest?.toISOString() ?? null,
    },
    boundaries,
    dropped: idsOf(thinning.dropped),
  };
  const message = `retention: drop ${count} commits of before ${value.before}`;
  if ((await appendRecord(repository, RETENTION_REF, { value, actor, message })) === null) {
    throw notRecorded(repository.workflow);
  }
}

/** Which runs began on the line of first parents from a commit down, through what was dropped before as well. */
async function runsBelow(
  repository: Repository,
  { commits, thinning }: RetentionPlan,
): Promise<(commit: number | undefined) => readonly string[]> {
  const before = await recordedBoundaries(repository);
  const below = new Map<number, readonly string[]>();
  for (const n of commits.rising()) {
    if (!thinning.isDropped(n)) continue;
    const [first] = commits.facts(n).parents;
    const under = first === undefined ? before.get(commits.ids.id(n))?.runs : below.get(first);
    const mark = commits.marks.get(n);
    const all = under ?? [];
    const begins = mark?.mark === "begins" && !all.includes(mark.run);
    below.set(n, begins ? [...all, mark.run] : all);
  }
  return (commit) => (commit === undefined ? [] : (below.get(commit) ?? []));
}

/** Whether a ref was moved meanwhile to a commit that is to be dropped, or to one that stands on such a commit. */
async function reachDropped(
  repository: Repository,
  { commits, thinning, roots }: RetentionPlan,
): Promise<boolean> {
  const idsIn = ({ branches, merges, tags, holds, others }: typeof roots) => [
    ...branches,
    ...merges,
    ...tags,
    ...holds,
    ...others,
  ];
  const known = new Set(idsIn(roots));
  const waiting = idsIn(await readRoots(repository)).filter((id) => !known.has(id));
  for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
    if (known.has(id)) continue;
    known.add(id);
    const n = commits.ids.find(id);
    if (n >= 0 && commits.has(n)) {
      if (thinning.isDropped(n)) return true;
      continue;
    }
    waiting.push(...(await repository.commits.read(id)).parents);
  }
  return false;
}
