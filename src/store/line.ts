import type { ObjectId } from "../core/ids.js";
import type { LoadedCommit, RootPart } from "../objects/commit-reader.js";
import type { ObjectReader } from "../objects/reader.js";
import { readAgain } from "./read-again.js";
import type { Repository } from "./repository.js";

/** How many commits, and how much below them, one call brings. */
export const LINE_PAGE_COMMITS = 1000;
const PAGE_OBJECTS = 4000;
const PAGE_BYTES = 8 * 1024 * 1024;

/** A commit of a line, and a reader of its objects. */
export interface OnLine {
  readonly commit: LoadedCommit;
  readonly objects: ObjectReader;
}

/**
 * Goes from a commit along first parents to a root: where the storage reads ahead, a call for each
 * page of those that are not at hand, which brings what the entry of their root trees leads to.
 *
 * @param pageCommits how many the first call brings at most
 */
export async function* lineFrom(
  repository: Repository,
  tip: ObjectId,
  entry: RootPart,
  pageCommits = LINE_PAGE_COMMITS,
): AsyncGenerator<OnLine, void, undefined> {
  const read = () => readLine(repository, tip, entry, pageCommits);
  yield* readAgain(repository, read, ({ commit }) => commit.id);
}

async function* readLine(
  repository: Repository,
  tip: ObjectId,
  entry: RootPart,
  pageCommits: number,
): AsyncGenerator<OnLine, void, undefined> {
  const { commits, objects, history } = repository;
  if (!objects.readsAhead) {
    const line = repository.load(history.firstParentWalk(tip), Number.POSITIVE_INFINITY);
    for await (const commit of line) yield { commit, objects: repository.objectsOf(commit) };
    return;
  }
  let next: ObjectId | undefined = tip;
  let page = pageCommits;
  while (next !== undefined) {
    if (commits.has(next)) {
      const commit: LoadedCommit = await commits.read(next);
      yield { commit, objects: repository.objectsOf(commit) };
      next = commit.parents[0];
      continue;
    }
    const read = await objects.readAhead({
      line: { from: next, commits: page },
      entries: [entry],
      maxObjects: PAGE_OBJECTS,
      maxBytes: PAGE_BYTES,
    });
    // None came: what is missing or damaged is an error of who reads it.
    if (read.commits.length === 0) await commits.read(next);
    page = LINE_PAGE_COMMITS;
    for (const record of read.commits) {
      const commit = commits.prime(record);
      const get = (id: ObjectId) => commit.inline.get(id) ?? read.objects.get(id);
      yield { commit, objects: objects.with({ get }) };
      next = commit.parents[0];
    }
  }
}
