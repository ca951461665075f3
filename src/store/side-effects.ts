import { isAgstateError } from "../core/errors.js";
import type { ObjectId } from "../core/ids.js";
import type { LoadedCommit } from "../objects/commit-reader.js";
import { decodeAt } from "../objects/decode.js";
import type { Link } from "../objects/encode.js";
import type { Repository } from "./repository.js";

/** A step that did something outside, or may have. */
export interface SideEffect {
  readonly number: number;
  readonly name: string;
  readonly action: "write" | "execute";
  /** `in doubt`: begun and not sealed. */
  readonly status: "completed" | "failed" | "in doubt";
  /** Its idempotency key; null when it has none. */
  readonly key: string | null;
  /** The commit that says so. */
  readonly commit: string;
}

/** How many commits one call reads. */
const PAGE = 1000;

const NAME = ["name"];
const NAMELESS = "(without a name)";

/**
 * Steps with side effects that a commit reaches and others do not, by number: each once, with the last that is said of it.
 *
 * Reads the commits that only this one reaches, the graph of the others down to where they part, and names of steps.
 *
 * @throws AgstateError `MISSING_OBJECT`, `CORRUPT_OBJECT` where history is damaged
 */
export async function sideEffectsBetween(
  repository: Repository,
  tip: ObjectId,
  others: readonly ObjectId[],
): Promise<SideEffect[]> {
  return lastOfEach(repository, await effectsBetween(repository, tip, others));
}

/**
 * As {@link sideEffectsBetween}, where one of the others is likely to reach all that there is: the rest, which may be
 * many, are asked for and walked only when it does not.
 */
export async function sideEffectsBeyond(
  repository: Repository,
  tip: ObjectId,
  likely: ObjectId,
  rest: () => Promise<readonly ObjectId[]>,
): Promise<SideEffect[]> {
  const commits = await effectsBetween(repository, tip, [likely]);
  if (commits.length === 0) return [];
  const left = new Set(await repository.history.notReached(tip, [likely, ...(await rest())]));
  return lastOfEach(
    repository,
    commits.filter(({ id }) => left.has(id)),
  );
}

/** Commits that tell of a step with a side effect. */
async function effectsBetween(
  repository: Repository,
  tip: ObjectId,
  others: readonly ObjectId[],
): Promise<LoadedCommit[]> {
  // The cursor tells in one look that there were no steps at all.
  if ((await repository.commits.read(tip)).nextStep === 1) return [];
  const ids = await repository.history.notReached(tip, others);
  const found: LoadedCommit[] = [];
  for (let at = 0; at < ids.length; at += PAGE) {
    for (const commit of await repository.commits.readAll(ids.slice(at, at + PAGE))) {
      const action = commit.step?.action;
      if (action === "write" || action === "execute") found.push(commit);
    }
  }
  return found;
}

async function lastOfEach(
  repository: Repository,
  commits: readonly LoadedCommit[],
): Promise<SideEffect[]> {
  const last = new Map<string, LoadedCommit>();
  for (const commit of commits) {
    // Branches that are merged give the same numbers, and tell their steps apart by key.
    const id = `${commit.step?.number} ${commit.step?.key ?? commit.author}`;
    if ((last.get(id)?.generation ?? 0) < commit.generation) last.set(id, commit);
  }
  const effects: SideEffect[] = [];
  for (const commit of last.values()) effects.push(await effectOf(repository, commit));
  return effects.sort((a, b) => a.number - b.number);
}

async function effectOf(repository: Repository, commit: LoadedCommit): Promise<SideEffect> {
  const { number, action, status, key } = commit.step as NonNullable<LoadedCommit["step"]>;
  const link = commit.root.step;
  return {
    number,
    name: link === undefined ? NAMELESS : await nameIn(repository, commit, link),
    action: action as SideEffect["action"],
    status: status === "started" ? "in doubt" : status,
    key: key ?? null,
    commit: commit.id,
  };
}

/** The name in a step's record, which may be gone while the commit still says that something was done. */
async function nameIn(repository: Repository, commit: LoadedCommit, link: Link): Promise<string> {
  try {
    const name = await decodeAt(repository.objectsOf(commit), link, NAME);
    // Records that callers made themselves are of any form.
    return typeof name === "string" ? name : NAMELESS;
  } catch (error) {
    if (isAgstateError(error, "ERASED", "WITHHELD")) return "(its name is not told)";
    throw error;
  }
}
