import { AgstateError } from "../../core/errors.js";
import type { ObjectId } from "../../core/ids.js";
import type { JsonValue } from "../../core/json.js";
import { formatPointer, parsePointer } from "../../core/json-pointer.js";
import { quoteForMessage } from "../../core/names.js";
import { type Contest, contestId, type Settlement } from "../../merge/contest.js";
import { MERGED_PARTS, type MergedPart, type PartContest } from "../../merge/merge-commits.js";
import { PathMarks } from "../../merge/path-marks.js";
import { askResolver, type Resolution } from "../../merge/resolvers.js";
import type { MaybeSide } from "../../merge/side.js";
import { resolvedSide } from "../../merge/three-way.js";
import type { Conflict, ConflictValue, MergeRecord, ResolveFunction } from "./types.js";

/** A resolution made by hand, as a stored merge keeps it. */
export interface StoredResolution {
  readonly part: MergedPart;
  readonly path: string;
  /** The conflict that it resolves; another one at the same path is open again. */
  readonly conflict: ObjectId;
  readonly how: "ours" | "theirs" | "value" | "delete";
  /** Whose value, when it is that of a merged branch. */
  readonly branch?: string;
  readonly value?: JsonValue;
  readonly by: string;
}

/** How a conflict was resolved, as it is recorded. */
export type Resolved = NonNullable<MergeRecord["resolved"]>[number];

/** How contests are settled, and what is recorded of it. */
export interface Settled {
  readonly settlements: Record<MergedPart, PathMarks<Settlement>>;
  /** By the id of the contest. */
  readonly resolved: ReadonlyMap<ObjectId, Resolved>;
}

/** What was settled before, and what was settled after that. */
export function both(before: Settled, after: Settled): Settled {
  const settlements = { state: new PathMarks<Settlement>(), policy: new PathMarks<Settlement>() };
  for (const part of MERGED_PARTS) {
    for (const settled of [before, after]) {
      for (const [path, side] of settled.settlements[part].entries()) {
        settlements[part].set(path, side);
      }
    }
  }
  return { settlements, resolved: new Map([...before.resolved, ...after.resolved]) };
}

/** What was settled, by hand or by a function, as a stored merge keeps it. */
export function toStored({ settlements, resolved }: Settled): StoredResolution[] {
  const stored: StoredResolution[] = [];
  for (const [conflict, { part, path, how, branch, by }] of resolved) {
    const settlement = settlements[part].at(parsePointer(path));
    const side = settlement !== undefined && "side" in settlement ? settlement.side : undefined;
    stored.push({
      ...{ part, path, conflict, how, by },
      ...(branch === undefined ? {} : { branch }),
      ...(how === "value" ? { value: side?.value as JsonValue } : {}),
    });
  }
  return stored;
}

export interface SettleOptions {
  readonly resolutions: readonly StoredResolution[];
  readonly resolve?: ResolveFunction | undefined;
  /** Who is recorded for what the function resolves. */
  readonly author: string;
  readonly branchOf: (source: number) => string;
  /** The conflicts of a contest, one a claim, in order. */
  readonly conflictsOf: (contest: PartContest) => Promise<readonly Conflict[]>;
  readonly maxBytes: number;
}

/** What has been decided about a contest so far. */
interface Decision {
  readonly settlement: Settlement;
  readonly how: Resolved["how"];
  readonly branch?: string | undefined;
  readonly by: string;
}

/** Settles the contests that a resolution made by hand fits, or that the function resolves. */
export async function settle(
  contests: readonly PartContest[],
  options: SettleOptions,
): Promise<Settled> {
  const settlements = { state: new PathMarks<Settlement>(), policy: new PathMarks<Settlement>() };
  const resolved = new Map<ObjectId, Resolved>();
  for (const found of contests) {
    const { part, contest } = found;
    const id = contestId(contest);
    const path = formatPointer(contest.path);
    const byHand = options.resolutions.find(
      (r) => r.conflict === id && r.part === part && r.path === path,
    );
    const decision =
      byHand === undefined ? await ask(found, options) : fromStored(byHand, contest, options);
    if (decision === undefined) continue;
    settlements[part].set(contest.path, decision.settlement);
    resolved.set(id, {
      part,
      path,
      kinds: [...new Set(contest.claims.map((claim) => claim.kind))],
      how: decision.how,
      ...(decision.branch === undefined ? {} : { branch: decision.branch }),
      by: decision.by,
    });
  }
  return { settlements, resolved };
}

function fromStored(
  resolution: StoredResolution,
  contest: Contest,
  options: SettleOptions,
): Decision | undefined {
  const { how, branch, by } = resolution;
  if (how === "ours") return { settlement: { keep: true }, how, by };
  if (how === "delete") return { settlement: { side: undefined }, how, by };
  if (how === "value") {
    return { settlement: { side: { value: resolution.value as JsonValue } }, how, by };
  }
  const claim = contest.claims.find(({ source }) => options.branchOf(source) === branch);
  return claim && { settlement: { side: claim.theirs }, how, branch, by };
}

/** Asks the function about each claim in turn; what it made of one is ours for the next. */
async function ask(found: PartContest, options: SettleOptions): Promise<Decision | undefined> {
  const { resolve, author } = options;
  if (resolve === undefined) return undefined;
  const { contest } = found;
  let decision: Decision = { settlement: { keep: true }, how: "ours", by: author };
  let ours: ConflictValue | undefined;
  const conflicts = await options.conflictsOf(found);
  for (let i = 0; i < conflicts.length; i++) {
    const conflict = conflicts[i] as Conflict;
    const given =
      ours === undefined ? conflict : { ...conflict, ours: { ...conflict.ours, ...ours } };
    const answer = await askResolver("the resolve function", given, resolve);
    if (answer === undefined) return undefined;
    if ("take" in answer && answer.take === "ours") continue;
    const { source, theirs } = contest.claims[i] as Contest["claims"][number];
    const side = resolvedSide(
      answer,
      { path: contest.path, ours: undefined, theirs },
      options.maxBytes,
    );
    const how = "take" in answer ? "theirs" : "delete" in answer ? "delete" : "value";
    const branch = how === "theirs" ? options.branchOf(source) : undefined;
    decision = { settlement: { side }, how, branch, by: author };
    ours = "take" in answer ? bare(conflict.theirs) : valueOfSide(side);
  }
  return decision;
}

function bare(side: ConflictValue): ConflictValue {
  return side.exists ? { exists: true, value: side.value } : { exists: false };
}

function valueOfSide(side: MaybeSide): ConflictValue {
  return side === undefined ? { exists: false } : { exists: true, value: side.value as JsonValue };
}

/**
 * Makes a resolution by hand of what a person said about a path.
 *
 * @param branch whose value `theirs` means, where several branches conflict
 * @throws AgstateError `INVALID_ARGUMENT`, `INVALID_VALUE`, `LIMIT_EXCEEDED`
 */
export function storedResolution(
  found: PartContest,
  resolution: Resolution,
  options: {
    readonly by: string;
    readonly branch?: string | undefined;
    readonly branchOf: (source: number) => string;
    readonly maxBytes: number;
  },
): StoredResolution {
  const { part, contest } = found;
  const path = formatPointer(contest.path);
  const base = { part, path, conflict: contestId(contest), by: options.by };
  if ("delete" in resolution) return { ...base, how: "delete" };
  if ("value" in resolution) {
    const sides = { path: contest.path, ours: undefined, theirs: undefined };
    const side = resolvedSide(resolution, sides, options.maxBytes);
    return { ...base, how: "value", value: side?.value as JsonValue };
  }
  if (resolution.take === "ours") return { ...base, how: "ours" };
  const branches = [...new Set(contest.claims.map(({ source }) => options.branchOf(source)))];
  const branch = options.branch ?? (branches.length === 1 ? branches[0] : undefined);
  if (branch === undefined || !branches.includes(branch)) {
    throw new AgstateError(
      "INVALID_ARGUMENT",
      branch === undefined
        ? `${branches.length} branches conflict at ${quoteForMessage(path)}; say whose value to take: ${branches.join(", ")}`
        : `${branch} does not conflict at ${quoteForMessage(path)}; there are ${branches.join(", ")}`,
      { path, branches },
    );
  }
  return { ...base, how: "theirs", branch };
}
