import type { Repository } from "../repository.js";
import type { StoredCommits } from "./commits.js";
import type { Thinning } from "./thinning.js";

/** Pending rows that belong to the workflow as a whole: keys, and what is kept for other regions. */
const OF_THE_WORKFLOW = /^(?:keys|payloads)\//;

const PAGE = 1000;

/** Pending rows of commits that are dropped. */
export interface PendingOver {
  readonly rows: number;
  /** What the keys of all these, and of no others, begin with. */
  readonly prefixes: readonly string[];
}

/**
 * Finds the pending rows that were written below commits which are dropped: those whose key has as its second part,
 * between slashes, the external id of such a commit, and of none that stays. What other keys belong to is not known, so they
 * stay.
 */
export async function pendingOfDropped(
  { storage, workflow }: Repository,
  commits: StoredCommits,
  thinning: Thinning,
): Promise<PendingOver> {
  const gone = new Set<string>();
  for (const n of thinning.dropped) {
    const { externalId } = commits.facts(n);
    if (externalId !== null) gone.add(externalId);
  }
  if (gone.size === 0) return { rows: 0, prefixes: [] };
  for (const n of commits.rising()) {
    const { externalId } = commits.facts(n);
    if (externalId !== null && !thinning.isDropped(n)) gone.delete(externalId);
  }
  let rows = 0;
  const prefixes = new Set<string>();
  for (let after: string | null = null; ; ) {
    const page = await storage.scanPending(workflow, after, PAGE);
    for (const { key } of page.rows) {
      const [scope, id, rest] = key.split("/", 3);
      if (rest === undefined || !gone.has(id as string) || OF_THE_WORKFLOW.test(key)) continue;
      rows++;
      prefixes.add(`${scope}/${id}/`);
    }
    after = page.next;
    if (after === null) return { rows, prefixes: [...prefixes] };
  }
}
