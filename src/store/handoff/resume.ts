import { AgstateError, isAgstateError } from "../../core/errors.js";
import { checkIdentity, checkOneLine, quoteForMessage } from "../../core/names.js";
import type { LoadedCommit } from "../../objects/commit-reader.js";
import { movedRow } from "../../refs/ref-store.js";
import type { ReviewRecord } from "../../reviews/record.js";
import type { CheckedResource, Resource } from "../../staleness/types.js";
import type { Beside } from "../branch-head.js";
import { type DiscardOptions, type LeftBehind, leftByReset } from "../discard.js";
import type { Repository } from "../repository.js";
import { usedMeanwhile } from "../reviews/desk.js";
import { type ReviewInfo, reviewOf } from "../reviews/review.js";
import { prepareChange, readReview, type StoredReview } from "../reviews/stored.js";
import type { Commit } from "../types.js";
import { type Basis, basisAt } from "./basis.js";
import { type Boundary, boundariesOf, isHandoff } from "./boundaries.js";
import { ENVELOPE_VERSION, type ResourceChange, type ResumedEnvelope } from "./envelope.js";
import { type Found, type FreshnessOptions, findOut } from "./freshness.js";
import { type Handoff, toHandoff } from "./info.js";
import { askToGoOn, withdraw } from "./staleness-review.js";
import type { SessionBranch } from "./write.js";

export interface ResumeOptions extends FreshnessOptions, DiscardOptions {
  /**
   * An earlier hand-off of the branch to go on from, by its tag or commit: the branch is reset to it once it may go on. Steps
   * with side effects that are left behind refuse it (`SIDE_EFFECTS_LEFT`) unless `sideEffects` says otherwise.
   */
  readonly from?: string;
  /** Who goes on; default the handle's author. */
  readonly author?: string;
  /** How long a review that is asked for may wait, in milliseconds; default for ever. */
  readonly reviewExpiresAfterMs?: number;
  /** W3C traceparent. */
  readonly trace?: string;
}

/** Whether everything is as it was. */
export interface FreshnessReport extends Omit<Found, "fingerprints"> {
  readonly branch: string;
  /** The hand-off that waits to be taken up; null where the branch has none. */
  readonly handoff: Handoff | null;
}

/** Whether work may go on. */
export interface ResumeReport extends FreshnessReport {
  /** Whether steps may run on the branch now. */
  readonly ready: boolean;
  /** The review that was asked for, or that let it go on; null where none is needed. */
  readonly review: ReviewInfo | null;
  /** The commit by which the branch was taken up; null where nothing had to be written. */
  readonly commit: Commit | null;
  /** Of a review that was discarded: where else the branch could go on from. */
  readonly earlier: readonly Boundary[];
  /** Of an earlier hand-off that was gone back to: steps with side effects that were left behind. */
  readonly sideEffects: LeftBehind["sideEffects"];
}

/** How often it is looked anew when others write on the branch meanwhile. */
const ATTEMPTS = 10;

/**
 * Checks everything that work on a branch relies on; nothing is written.
 *
 * @throws AgstateError `INVALID_VALUE`, `REVISION_NOT_FOUND`, `INVALID_ARGUMENT`
 */
export async function checkFreshness(
  repository: Repository,
  branch: SessionBranch,
  options: FreshnessOptions & { readonly from?: string } = {},
): Promise<FreshnessReport> {
  const { from, ...limits } = options;
  await branch.refresh();
  const basis = await basisAt(repository, await startOf(repository, branch, from));
  return reportOf(branch, basis, await findOut(repository, basis, branch, limits));
}

/**
 * Checks everything that work on a branch relies on, and takes the branch up if it is as it was, or as somebody has agreed
 * that it may be; else asks for a review, and leaves the branch as it is.
 *
 * @throws AgstateError `INVALID_VALUE`, `REVISION_NOT_FOUND`, `INVALID_ARGUMENT`, `SIDE_EFFECTS_LEFT`, `REF_CONFLICT` when
 *   somebody else took it up or handed it off meanwhile
 */
export async function resume(
  repository: Repository,
  branch: SessionBranch,
  options: ResumeOptions = {},
): Promise<ResumeReport> {
  const {
    from,
    author: given,
    sideEffects: left,
    reviewExpiresAfterMs,
    trace,
    ...limits
  } = options;
  const author = checkIdentity("author", given ?? branch.author);
  if (trace !== undefined) checkOneLine("trace", trace);
  checkExpiry(reviewExpiresAfterMs);
  await branch.refresh();
  const start = await startOf(repository, branch, from);
  const basis = await basisAt(repository, start);
  const found = await findOut(repository, basis, branch, limits);
  const report = {
    ...reportOf(branch, basis, found),
    review: null,
    commit: null,
    earlier: [],
    sideEffects: null,
  };
  let review: StoredReview | null = null;
  if (found.verdict === "fresh") {
    await withdraw(repository, branch, basis, found);
  } else {
    const { id, status } = await askToGoOn(repository, branch, basis, found, {
      ...(reviewExpiresAfterMs !== undefined && { reviewExpiresAfterMs }),
    });
    const info = (await reviewOf(repository, id)).info;
    if (status !== "approved") {
      const all = status === "discarded" ? await boundariesOf(repository, branch.loadedHead) : [];
      const earlier = all.filter(({ handoff }) => handoff.commit !== basis.session.boundary?.id);
      return { ...report, ready: false, review: info, earlier };
    }
    review = await readReview(repository, id);
  }
  const goesBack = start.id !== branch.loadedHead.id;
  const sideEffects = goesBack ? await goBack(repository, branch, start, left, author) : null;
  const hasToSay = basis.handoff !== null || review !== null || goesBack;
  const commit = hasToSay
    ? await takeUp(repository, branch, { basis, found, review, author, trace })
    : null;
  const info = review === null ? null : (await reviewOf(repository, review.id)).info;
  return { ...report, ready: true, review: info, commit, sideEffects };
}

function checkExpiry(ms: number | undefined): void {
  if (ms === undefined || (Number.isSafeInteger(ms) && ms > 0)) return;
  throw new AgstateError(
    "INVALID_ARGUMENT",
    `reviewExpiresAfterMs is ${String(ms)}; a review waits a whole number of milliseconds above 0, or for ever when it is left out`,
    { reviewExpiresAfterMs: String(ms) },
  );
}

/** The commit that work is to go on from. */
async function startOf(
  repository: Repository,
  branch: SessionBranch,
  from: string | undefined,
): Promise<LoadedCommit> {
  const head = branch.loadedHead;
  if (from === undefined) return head;
  const start = await repository.commitAt(from);
  const isOwn = await repository.history.isAncestor(start.id, head.id);
  if (isOwn && (await isHandoff(repository, start))) return start;
  throw new AgstateError(
    "INVALID_ARGUMENT",
    isOwn
      ? `${quoteForMessage(from)} is no hand-off; agstate resume ${branch.name} --list shows those of the branch`
      : `${quoteForMessage(from)} is not in the history of ${branch.name}; make a branch from it to go on there`,
    { from, commit: start.id, branch: branch.name },
  );
}

/** Points the branch to an earlier hand-off, where it waits to be taken up, should this end here. */
async function goBack(
  repository: Repository,
  branch: SessionBranch,
  target: LoadedCommit,
  sideEffects: DiscardOptions["sideEffects"] = "refuse",
  actor: string,
): Promise<LeftBehind["sideEffects"]> {
  const { ref } = branch;
  const head = branch.loadedHead.id;
  const left = await leftByReset(repository, { ref, head, target: target.id }, { sideEffects });
  const expect = { kind: "id", id: head, seq: branch.seq } as const;
  const reason = `resume: going back to ${target.id}`;
  const update = { ref, expect, target: target.id, note: { actor, reason } };
  movedRow(update, (await repository.refs.apply({ updates: [update] }))[0]);
  await branch.refresh();
  return left;
}

interface TakingUp {
  readonly basis: Basis;
  readonly found: Found;
  /** The approval to be used up. */
  readonly review: StoredReview | null;
  readonly author: string;
  readonly trace: string | undefined;
}

/** Commits that the branch goes on, and with what. */
async function takeUp(
  repository: Repository,
  branch: SessionBranch,
  taking: TakingUp,
): Promise<Commit> {
  const { basis, review, author, trace } = taking;
  const at = repository.context.now();
  const envelope = resumedEnvelope(taking, at);
  const message = messageOf(branch.name, taking, envelope);
  for (let attempt = 1; ; attempt++) {
    try {
      return await branch.putEnvelope(async (head) => {
        if ((head.root.envelope?.id ?? null) !== basis.envelope) throw meanwhile(branch.name);
        const used = review === null ? [] : [await useOf(repository, review, author, at)];
        return { envelope, message, author, trace, beside: () => used };
      });
    } catch (error) {
      if (!isAgstateError(error, "REF_CONFLICT") || attempt >= ATTEMPTS) throw error;
      await branch.refresh();
      if ((branch.loadedHead.root.envelope?.id ?? null) !== basis.envelope) throw error;
    }
  }
}

/** The change by which an approval is used up. */
async function useOf(
  repository: Repository,
  { id }: StoredReview,
  actor: string,
  at: number,
): Promise<Beside> {
  const review = await readReview(repository, id);
  if (review.record.status !== "approved") throw usedMeanwhile(id);
  const record: ReviewRecord = { ...review.record, status: "used", use: { number: null, at } };
  const says = "Use the approval to go on";
  const { update, objects } = prepareChange(repository, review, record, { actor, says });
  return { update, objects, lost: () => usedMeanwhile(id) };
}

function resumedEnvelope({ basis, found, review, author }: TakingUp, at: number): ResumedEnvelope {
  return {
    v: ENVELOPE_VERSION,
    kind: "resumed",
    by: author,
    at,
    boundary: basis.session.boundary?.id ?? null,
    tag: basis.tag,
    verdict: found.verdict,
    review: review?.id ?? null,
    changes: found.resources.flatMap(changeOf),
    drift: found.drift,
    resources: found.resources.flatMap((one) => accepted(one, at)),
    fingerprints: found.fingerprints ?? basis.fingerprints,
    fingerprintTolerance: basis.fingerprintTolerance,
  };
}

function changeOf({ resource, found, now, tolerated }: CheckedResource): ResourceChange[] {
  if (found === "same" || found === "ignored") return [];
  const { type, id, version: was } = resource;
  return [{ type, id, found, was, now, tolerated }];
}

/**
 * A resource with the version that work goes on from. What was tolerated rests on what was read then, and grows older; what
 * somebody agreed to rests on what was found now, and nothing rests on what is gone.
 */
function accepted({ resource, found, now, tolerated }: CheckedResource, at: number): Resource[] {
  if (found === "same") return [{ ...resource, observedAt: at }];
  if (tolerated || found === "ignored" || found === "unknown") return [resource];
  return found === "gone" ? [] : [{ ...resource, version: now, observedAt: at }];
}

/** What the commit says: no id of a resource, as a message is in clear and stays, whatever is encrypted or erased. */
function messageOf(
  branch: string,
  { basis, found, review }: TakingUp,
  { verdict, changes }: ResumedEnvelope,
): string {
  const by = review?.record.decision?.by;
  const said = by === undefined ? verdict : `${verdict}, approved by ${by}`;
  const all = found.resources.length;
  const counts = (["changed", "gone", "unknown"] as const).flatMap((kind) => {
    const number = changes.filter((change) => change.found === kind).length;
    return number === 0 ? [] : [`${number} ${kind}`];
  });
  const lines = [
    `${all} ${all === 1 ? "resource" : "resources"} checked: ${counts.join(", ") || "all as they were"}`,
  ];
  const drift = found.drift.filter(({ change }) => change !== "untold").length;
  if (drift > 0) lines.push(`${drift} of its fingerprints ${drift === 1 ? "differs" : "differ"}`);
  if (review !== null) {
    const reason = review.record.decision?.reason ?? "";
    lines.push(`Review ${review.id}${reason === "" ? "" : `: ${reason}`}`);
  }
  if (basis.tag !== null) lines.push(`Handed off at ${basis.tag}`);
  return `Resume ${branch}: ${said}\n\n${lines.join("\n")}`;
}

function reportOf(branch: SessionBranch, basis: Basis, found: Found): FreshnessReport {
  const { verdict, resources, drift, untold } = found;
  const { handoff } = basis;
  const { boundary } = basis.session;
  return {
    branch: branch.name,
    handoff: handoff === null || boundary === null ? null : toHandoff(boundary, handoff),
    verdict,
    resources,
    drift,
    untold,
  };
}

function meanwhile(branch: string): AgstateError {
  return new AgstateError(
    "REF_CONFLICT",
    `${branch} was taken up or handed off by somebody else meanwhile; look at what they did, and resume again`,
    { branch },
  );
}
