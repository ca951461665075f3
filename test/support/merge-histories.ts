import type { Maybe, MergeModel, ModelContest, ModelSource } from "./merge-model.js";

/** A commit of a model: parts are what is merged. */
export interface ModelCommit {
  readonly id: string;
  readonly parents: readonly ModelCommit[];
  readonly state: Maybe;
  readonly policy: Maybe;
  /** The ids of the objects that the parts are; empty where there is none. */
  readonly partIds: Readonly<Record<Part, string>>;
}
export type Part = "state" | "policy";

/** The commits that tips reach, themselves included. */
export function ancestors(...tips: readonly ModelCommit[]): Set<ModelCommit> {
  const seen = new Set(tips);
  for (const commit of seen) for (const parent of commit.parents) seen.add(parent);
  return seen;
}

/** The common ancestors of a commit and the others that no other common ancestor reaches. */
export function bestCommon(commit: ModelCommit, others: readonly ModelCommit[]): ModelCommit[] {
  const reached = ancestors(...others);
  const common = [...ancestors(commit)].filter((c) => reached.has(c));
  return common.filter((c) => !common.some((other) => other !== c && ancestors(other).has(c)));
}

/** The base that several bases make: a merge of them, in the order of their values' ids; what conflicts there has no base. */
function virtualBase(
  part: Part,
  bases: readonly ModelCommit[],
  newModel: () => MergeModel,
): Omit<ModelSource, "theirs"> {
  const orderOf = ({ id, partIds }: ModelCommit) => `${partIds[part]} ${id}`;
  const [first, ...others] = [...bases].sort((a, b) => (orderOf(a) < orderOf(b) ? -1 : 1));
  if (first === undefined) return { base: undefined };
  const model = newModel();
  let base = first[part];
  const merged = [first];
  for (const other of others) {
    const below = virtualBase(part, bestCommon(other, merged), newModel);
    base = model.merge(base, { ...below, theirs: other[part] });
    merged.push(other);
  }
  return { base, unknown: [...model.contests.values()].map(({ path }) => path) };
}

export interface ModelOutcome {
  readonly value: Maybe;
  readonly contests: readonly ModelContest[];
  readonly ambiguous: boolean;
}

/** Which of the sources bring something; the target is contained in the one of a fast-forward. */
export function plan(
  target: ModelCommit,
  sources: readonly ModelCommit[],
): { kind: "up-to-date" | "fast-forward" | "merge"; sources: ModelCommit[] } {
  const brings = [...new Set(sources)].filter(
    (source) =>
      !ancestors(target).has(source) &&
      !sources.some((other) => other !== source && ancestors(other).has(source)),
  );
  const [first] = brings;
  if (first === undefined) return { kind: "up-to-date", sources: [] };
  const forward = brings.length === 1 && ancestors(first).has(target);
  return { kind: forward ? "fast-forward" : "merge", sources: brings };
}

/** Merges a part of commits into that of another, by their histories. */
export function mergePart(
  part: Part,
  target: ModelCommit,
  sources: readonly ModelCommit[],
  newModel: (settled: ReadonlyMap<string, Maybe>) => MergeModel,
  settled: ReadonlyMap<string, Maybe>,
): ModelOutcome {
  const models: MergeModel[] = [];
  const make = (values: ReadonlyMap<string, Maybe>) => {
    const model = newModel(values);
    models.push(model);
    return model;
  };
  const model = make(settled);
  let value = target[part];
  const merged = [target];
  for (const source of sources) {
    const base = virtualBase(part, bestCommon(source, merged), () => make(new Map()));
    value = model.merge(value, { ...base, theirs: source[part] });
    merged.push(source);
  }
  const ambiguous = models.some((one) => one.ambiguous);
  return { value, contests: [...model.contests.values()], ambiguous };
}
