import type { ObjectId } from "../../core/ids.js";
import type { LoadedCommit } from "../../objects/commit-reader.js";
import type { Repository } from "../repository.js";
import { recordedRuns, recordOfBoundary } from "./records.js";

/**
 * Whether a run was on a line of which something is gone: it began at a commit whose step's record is over, or below
 * where history was dropped.
 *
 * @param unread commits of the line whose steps cannot be read
 * @param last the commit with which the line ends
 */
export async function wasRun(
  repository: Repository,
  run: string,
  unread: readonly ObjectId[],
  last: LoadedCommit | undefined,
): Promise<boolean> {
  if (unread.length > 0) {
    const here = new Set(unread);
    const marks = await recordedRuns(repository);
    if (marks.some((mark) => mark.run === run && here.has(mark.commit))) return true;
  }
  if (last?.cut === undefined) return false;
  const record = await recordOfBoundary(repository, last.id);
  return record?.boundary.runs.includes(run) ?? false;
}
