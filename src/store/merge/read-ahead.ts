import type { ObjectId } from "../../core/ids.js";
import { MERGED_PARTS } from "../../merge/merge-commits.js";
import { MERGED, readVersions } from "../../merge/versions.js";
import type { LoadedCommit } from "../../objects/commit-reader.js";
import type { Repository } from "../repository.js";

/**
 * Reads, in a few calls to the storage, what a merge of sources into a target begins with: the
 * history down to their common ancestors, these commits, and small states as a whole.
 */
export async function readCommitsAhead(
  repository: Repository,
  target: ObjectId,
  sources: readonly ObjectId[],
): Promise<void> {
  const { history } = repository;
  await history.load([target, ...sources]);
  const wanted = new Set([target, ...sources]);
  for (const source of new Set(sources)) {
    for (const base of await history.mergeBases(source, [target])) wanted.add(base);
  }
  await repository.loadAhead([...wanted], MERGED_PARTS, false);
}

/** Reads ahead where the values that are merged differ, for all sources at once. */
export async function readValuesAhead(
  repository: Repository,
  target: LoadedCommit,
  steps: readonly {
    readonly theirs: LoadedCommit | null;
    readonly bases: readonly ObjectId[];
  }[],
): Promise<void> {
  const bases = await repository.commits.readAll([...new Set(steps.flatMap((step) => step.bases))]);
  const merged = [...bases, target, ...steps.map(({ theirs }) => theirs)];
  await readVersions(
    repository.objects,
    MERGED_PARTS.map((part) => merged.map((commit) => commit?.root[part]?.id)),
    MERGED,
  );
}
