import { AgstateError } from "../core/errors.js";
import type { ObjectId } from "../core/ids.js";
import { parsePointer } from "../core/json-pointer.js";
import { quoteForMessage } from "../core/names.js";
import type { LoadedCommit } from "../objects/commit-reader.js";
import { decodeAt } from "../objects/decode.js";
import type { ObjectReader } from "../objects/reader.js";
import { readAgain } from "./read-again.js";
import type { Repository } from "./repository.js";
import type { OlderState } from "./schema/states.js";
import type { Commit, LogOptions, ReadStateOptions, ReflogLine, State } from "./types.js";
import { toCommit, toReflogLine } from "./views.js";

/** Reads a commit's state, or the value at a JSON Pointer in it; one of an older version after migrating it. */
export async function readState(
  repository: Repository,
  commit: LoadedCommit,
  pointer: string,
  shown: string,
  reader = repository.objectsOf(commit),
  { migrate = true }: ReadStateOptions = {},
): Promise<State> {
  const tokens = parsePointer(pointer);
  const from = migrate ? (repository.schema?.migratesFrom(commit) ?? null) : null;
  const value =
    from === null
      ? await storedAt(commit, tokens, reader)
      : await migratedAt({ repository, commit, from, reader }, tokens);
  if (value === undefined) {
    throw new AgstateError(
      "PATH_NOT_FOUND",
      `there is no value at ${quoteForMessage(pointer)} in the state of ${shown}`,
      { path: pointer, commit: commit.id },
    );
  }
  return value;
}

async function storedAt(
  { root: { state } }: LoadedCommit,
  tokens: readonly string[],
  reader: ObjectReader,
): Promise<State | undefined> {
  return state === undefined ? undefined : decodeAt(reader, state, tokens);
}

async function migratedAt(
  older: OlderState,
  tokens: readonly string[],
): Promise<State | undefined> {
  // Loaded when there is something to migrate: in most processes nothing ever is.
  const states = await import("./schema/states.js");
  return states.migratedAt(older, tokens);
}

/** Commits reachable from the tips, children before parents. */
export async function* logFrom(
  repository: Repository,
  tips: readonly ObjectId[],
  options: LogOptions,
): AsyncGenerator<Commit, void, undefined> {
  const { history } = repository;
  const limit = checkCount("limit", options.limit);
  const walk = () => {
    const nodes =
      options.firstParent === true && tips.length === 1
        ? history.firstParentWalk(tips[0] as ObjectId)
        : history.topoWalk(tips);
    return repository.load(nodes, limit);
  };
  for await (const commit of readAgain(repository, walk, ({ id }) => id)) yield toCommit(commit);
}

export async function readReflog(
  repository: Repository,
  ref: string,
  most?: number,
): Promise<ReflogLine[]> {
  const limit = checkCount("limit", most);
  const row = await repository.refs.row(ref);
  if (row === undefined) return [];
  const entries = await repository.storage.readReflog(repository.workflow, ref, { limit });
  return entries.map((entry) => toReflogLine(entry, row.seq));
}

/** A number of answers to give at most; all when it is not given. */
export function checkCount(what: string, count = Number.POSITIVE_INFINITY): number {
  if (count === Number.POSITIVE_INFINITY || (Number.isSafeInteger(count) && count >= 0)) {
    return count;
  }
  throw new AgstateError("INVALID_ARGUMENT", `${what} is ${count}; it must be a whole number`, {
    [what]: count,
  });
}
