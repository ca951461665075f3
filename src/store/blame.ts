import { AgstateError } from "../core/errors.js";
import { formatPointer, parsePointer } from "../core/json-pointer.js";
import { quoteForMessage } from "../core/names.js";
import { type BlamedPart, type BlameOptions, blameValue, lastWriters } from "../merge/blame.js";
import type { Repository } from "./repository.js";
import type { Commit } from "./types.js";
import { toCommit } from "./views.js";

export type { BlameOptions } from "../merge/blame.js";

/** A value, or a stretch of a list's elements, and the commit that last wrote it. */
export interface BlameLine {
  /** JSON Pointer into the state at the revision; of the first element, for a stretch of elements. */
  readonly path: string;
  /** Index of the first element of a stretch; null when the line is about no elements. */
  readonly from: number | null;
  /** Index after the last element of a stretch. */
  readonly to: number | null;
  readonly commit: Commit;
  /** Whether it may be older than the commit: the history before it is not stored or was erased. */
  readonly boundary: boolean;
}

/**
 * Tells which commits last wrote the value at a JSON Pointer: one line for a
 * scalar or a text, a line a member for an object, a line for each stretch of
 * elements with one writer for a list.
 *
 * @throws AgstateError `REVISION_NOT_FOUND`, `INVALID_PATH`, `PATH_NOT_FOUND` (which names who removed the value)
 */
export async function blame(
  repository: Repository,
  revision: string,
  pointer?: string,
  options: BlameOptions = {},
): Promise<BlameLine[]> {
  const resolved = await repository.revisions.resolve(revision);
  const at = pointer ?? resolved.pointer ?? "";
  const tokens = parsePointer(at);
  const parts = await blameValue(repository, resolved.id, tokens, options);
  if (parts !== null) return parts.map(toLine);

  const writers = await lastWriters(repository, [resolved.id], [tokens], options);
  const remover = writers[0]?.[0]?.commit;
  const removed = remover === undefined ? "" : `; ${remover.author} removed it in ${remover.id}`;
  throw new AgstateError(
    "PATH_NOT_FOUND",
    `there is no value at ${quoteForMessage(at)} in the state of ${revision}${removed}`,
    { path: at, commit: resolved.id, removedBy: remover?.id ?? null },
  );
}

function toLine({ path, elements, commit, boundary }: BlamedPart): BlameLine {
  const from = elements?.from ?? null;
  return {
    path: formatPointer(from === null ? path : [...path, from]),
    from,
    to: elements?.to ?? null,
    commit: toCommit(commit),
    boundary,
  };
}
