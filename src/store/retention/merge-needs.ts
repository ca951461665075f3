import type { ObjectId } from "../../core/ids.js";
import type { LoadedCommit } from "../../objects/commit-reader.js";
import type { Repository } from "../repository.js";

/** What stored merges go on from. */
export interface MergeNeeds {
  /** Their commits, the target and sources of each, and their bases. */
  readonly commits: readonly ObjectId[];
  /** Targets and sources, which are merged with what branches are at by then. */
  readonly tips: readonly ObjectId[];
}

/**
 * Finds what stored merges, whose commits have target and sources as parents, need to be settled: of a cherry-pick or
 * revert also what the source stands on.
 */
export async function mergeNeeds(
  repository: Repository,
  merges: readonly ObjectId[],
): Promise<MergeNeeds> {
  if (merges.length === 0) return { commits: [], tips: [] };
  const { commits, history } = repository;
  const needed = new Set<ObjectId>(merges);
  const tips = new Set<ObjectId>();
  const stored: LoadedCommit[] = await commits.readAll(merges);
  for (const { parents } of stored) {
    const [target, ...sources] = parents;
    if (target === undefined) continue;
    for (const id of parents) {
      needed.add(id);
      tips.add(id);
    }
    for (const source of await commits.readAll(sources)) {
      for (const id of source.parents) needed.add(id);
      for (const id of await history.mergeBases(target, [source.id])) needed.add(id);
    }
  }
  return { commits: [...needed], tips: [...tips] };
}
