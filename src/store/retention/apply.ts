import { AgstateError } from "../../core/errors.js";
import { checkIdentity } from "../../core/names.js";
import { recordEach } from "../audit/tally.js";
import type { GcReport } from "../gc/collect.js";
import type { Repository } from "../repository.js";
import { expire } from "./expire.js";
import { planRetention, type RetentionPlan } from "./plan.js";
import { thin } from "./thin.js";
import type { RetentionOptions, RetentionReport } from "./types.js";

/** How often it is planned anew when refs come to reach what was to be dropped. */
const ATTEMPTS = 5;

/**
 * Takes away what the retention policy says is over: history first, then payload of the commits that stay. Run
 * again after an interruption, it goes on.
 *
 * @throws AgstateError as `planRetention`; `REF_CONFLICT` when refs reach what is to be dropped again and again
 */
export async function applyRetention(
  repository: Repository,
  declared: string | null,
  options: RetentionOptions,
): Promise<RetentionReport> {
  const actor = checkIdentity("actor", options.actor ?? "agstate");
  let plan = await planRetention(repository, declared, options);
  let collected: GcReport | null = null;
  for (let attempt = 1; plan.historyBefore !== null; attempt++) {
    collected = await thin(repository, plan, options);
    if (collected !== null) break;
    if (attempt === ATTEMPTS) throw stillReached(repository.workflow);
    plan = await planRetention(repository, declared, options);
  }
  const expired = await expire(repository, plan, options);
  await recordHeld(repository, plan, actor);
  const { payload, history } = plan.report;
  return {
    ...plan.report,
    dryRun: false,
    payload: payload && { ...payload, inline: expired.inline, bytes: expired.bytes },
    history: history && { ...history, removed: collected && removedOf(collected) },
    spared: expired.spared + (collected?.spared ?? 0),
  };
}

function stillReached(workflow: string): AgstateError {
  return new AgstateError(
    "REF_CONFLICT",
    `nothing of workflow ${workflow} was dropped: refs were moved to what was to go, again and again; try again`,
    { workflow },
  );
}

function removedOf({ commits, blobs, trees, bytes }: GcReport) {
  return { commits, blobs, trees, bytes };
}

/** Puts into the audit that holds kept what the policy says is over. */
async function recordHeld(
  repository: Repository,
  { report, policy }: RetentionPlan,
  actor: string,
): Promise<void> {
  const objects = report.payload?.kept.holds;
  const commits = report.history?.kept.holds ?? 0;
  if (objects === undefined && commits === 0) return;
  await recordEach(repository, {
    kind: "refused",
    actor,
    says: `retention: holds keep what is over: ${report.holds.join(", ")}`,
    facts: {
      name: "retention",
      why: `${policy}; held by ${report.holds.join(", ")}`,
      policy,
      holds: report.holds.join(" "),
      objects: objects === undefined ? 0 : objects.blobs + objects.trees,
      commits,
    },
  });
}
