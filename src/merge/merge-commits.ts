import type { ObjectId } from "../core/ids.js";
import type { CommitReader, LoadedCommit } from "../objects/commit-reader.js";
import { createDraftContext } from "../objects/draft/draft.js";
import type { Link } from "../objects/encode.js";
import type { Isolation } from "../objects/isolation.js";
import type { ObjectReader } from "../objects/reader.js";
import type { ObjectSink, WrittenObject } from "../objects/sink.js";
import type { Contest, Settlement } from "./contest.js";
import type { HistoryReader } from "./history.js";
import type { PathMarks } from "./path-marks.js";
import { PolicyScope } from "./policy.js";
import type { CustomResolvers } from "./resolvers.js";
import { type MaybeSide, sideOf } from "./side.js";
import { ThreeWayMerge } from "./three-way.js";
import { VirtualBases } from "./virtual-base.js";

/** The parts of a commit that are merged; the merge policies by default rules. */
export const MERGED_PARTS = ["state", "policy"] as const;
export type MergedPart = (typeof MERGED_PARTS)[number];

/** What is merged into the target: the change from the bases to `theirs`; null stands for an empty commit. */
export interface MergeStep {
  readonly theirs: LoadedCommit | null;
  readonly bases: readonly ObjectId[];
}

/** The states of commits as they are merged: all of one version. */
export interface MergedStates {
  of(commit: LoadedCommit): Link | undefined | Promise<Link | undefined>;
  /** Objects that bringing states to that version made, and that are not stored. */
  readonly made: ReadonlyMap<ObjectId, WrittenObject>;
}

export interface MergeInput {
  readonly reader: ObjectReader;
  /** For what the merge makes: sealed as what it merges. */
  readonly newSink: () => ObjectSink;
  readonly commits: CommitReader;
  readonly states: MergedStates;
  readonly history: Pick<HistoryReader, "mergeBases">;
  readonly isolation: Isolation | null;
  readonly maxBytes: number;
  readonly target: LoadedCommit;
  readonly steps: readonly MergeStep[];
  /** In force for the state. */
  readonly policies: PolicyScope;
  readonly resolvers: CustomResolvers;
  readonly settlements?: Readonly<Record<MergedPart, PathMarks<Settlement>>> | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A contest and the part of the commit that it is in. */
export interface PartContest {
  readonly part: MergedPart;
  readonly contest: Contest;
}

export interface MergeOutcome {
  /** The merged parts; at contested paths that are not settled they hold ours. */
  readonly root: Readonly<Record<MergedPart, Link | undefined>>;
  /** The parts of the target that were merged into. */
  readonly target: Readonly<Record<MergedPart, Link | undefined>>;
  readonly states: MergedStates;
  /** Holds the objects of the result that are not stored, among others that the way to it made. */
  readonly sink: ObjectSink;
  readonly contests: readonly PartContest[];
  /** Reads stored objects and those of the result. */
  readonly reader: ObjectReader;
}

/** A part of a commit as it is merged. */
export function mergedPart(
  states: MergedStates,
  commit: LoadedCommit,
  part: MergedPart,
): Link | undefined | Promise<Link | undefined> {
  return part === "state" ? states.of(commit) : commit.root[part];
}

/** The objects of an outcome that a commit with its root needs; others are dropped. */
export function resultObjects({ sink, root, states }: MergeOutcome): ObjectSink {
  for (const object of states.made.values()) sink.adopt(object);
  const links = Object.values(root).filter((link) => link !== undefined);
  sink.keepReachable(links.map((link) => link.id));
  return sink;
}

/**
 * Merges the changes of several commits into one, part by part; writes nothing.
 *
 * The same input gives the same result, whatever was read before.
 *
 * @throws SubjectKeysNeeded when something belongs to a subject whose key is not at hand
 */
export async function mergeCommits(input: MergeInput): Promise<MergeOutcome> {
  const sink = input.newSink();
  const scratch = input.newSink();
  const { states } = input;
  const { made } = states;
  const reader = input.reader.with({
    get: (id) => sink.get(id) ?? scratch.get(id) ?? made.get(id)?.decoded,
  });
  const context = createDraftContext(reader, sink);
  const scratchContext = createDraftContext(reader, scratch);
  const root: Partial<Record<MergedPart, Link>> = {};
  const target: Partial<Record<MergedPart, Link>> = {};
  const contests: PartContest[] = [];

  for (const part of MERGED_PARTS) {
    const options = {
      isolation: part === "state" ? input.isolation : null,
      policies: part === "state" ? input.policies : PolicyScope.none,
      resolvers: input.resolvers,
      maxBytes: input.maxBytes,
    };
    const bases = new VirtualBases({
      mergeBases: (commit, others) => input.history.mergeBases(commit, others),
      valueIn: async (id) => sideOf(await mergedPart(states, await input.commits.read(id), part)),
      newMerge: () => new ThreeWayMerge({ ...options, context: scratchContext }),
    });
    const settlements = input.settlements?.[part];
    const merge = new ThreeWayMerge({
      ...options,
      context,
      ...(settlements === undefined ? {} : { settlements }),
    });
    const before = await mergedPart(states, input.target, part);
    if (before !== undefined) target[part] = before;
    let ours: MaybeSide = sideOf(before);
    for (const { theirs, bases: ids } of input.steps) {
      input.signal?.throwIfAborted();
      ours = await merge.merge(ours, {
        ...(await bases.of(ids)),
        theirs: sideOf(theirs === null ? undefined : await mergedPart(states, theirs, part)),
      });
    }
    if (ours?.link !== undefined) root[part] = ours.link;
    for (const [, contest] of merge.contests.entries()) contests.push({ part, contest });
  }
  scratch.ready();
  sink.ready();
  return {
    root: { state: root.state, policy: root.policy },
    target: { state: target.state, policy: target.policy },
    states,
    sink,
    contests,
    reader,
  };
}
