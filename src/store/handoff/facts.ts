import { isAgstateError } from "../../core/errors.js";
import type { ObjectId } from "../../core/ids.js";
import type { LoadedCommit } from "../../objects/commit-reader.js";
import { CANONICAL_REF } from "../../refs/names.js";
import type { Repository } from "../repository.js";
import { reviewsOf } from "../reviews/review.js";
import { sideEffectsBetween } from "../side-effects.js";
import type { Listed, SessionFacts } from "./envelope.js";
import type { Session } from "./session.js";
import { stepNames } from "./step-names.js";

/** How many of each kind an envelope lists; their number is told as well. */
const LISTED_MAX = 200;

/**
 * Gathers what a session leaves to whoever goes on with its branch. Where there was no envelope before, its steps are those
 * that canonical does not have; of canonical itself all.
 */
export async function sessionFacts(
  repository: Repository,
  head: LoadedCommit,
  session: Session,
  branch: { readonly ref: string; readonly name: string },
): Promise<SessionFacts> {
  const { boundary } = session;
  const before = boundary === null ? await canonicalBeside(repository, branch.ref) : [boundary.id];
  const numbers = await ownSteps(repository, head, session, before);
  const [first] = numbers;
  const last = numbers.at(-1);
  const effects = numbers.length === 0 ? [] : await sideEffectsBetween(repository, head.id, before);
  const reviews = await reviewsOf(repository, { open: true, branch: branch.ref });
  return {
    since: boundary?.id ?? null,
    steps:
      first === undefined || last === undefined ? null : { first, last, count: numbers.length },
    sideEffects: listed(
      effects.map(({ number, name, action, status, key }) => ({
        number,
        name,
        action,
        status,
        key,
      })),
    ),
    inDoubt: listed(await stepNames(repository, head, head.inFlight)),
    conflicts: listed(await openConflicts(repository, branch.name)),
    reviews: listed(
      reviews.map(({ id, info }) => ({ id, kind: info.kind, name: info.subject.name })),
    ),
  };
}

async function canonicalBeside({ refs }: Repository, ref: string): Promise<ObjectId[]> {
  const canonical = ref === CANONICAL_REF ? null : (await refs.row(CANONICAL_REF))?.id;
  return canonical ? [canonical] : [];
}

/** Numbers of the steps of a session that others do not have, rising, each once. */
async function ownSteps(
  { history }: Repository,
  head: LoadedCommit,
  { boundary, steps }: Session,
  others: readonly ObjectId[],
): Promise<number[]> {
  const isAll = boundary !== null || others.length === 0 || steps.length === 0;
  const own = isAll ? null : new Set(await history.notReached(head.id, others));
  const numbers = steps
    .filter(({ commit }) => own === null || own.has(commit))
    .map(({ number }) => number);
  return [...new Set(numbers)].sort((a, b) => a - b);
}

function listed<T>(items: readonly T[]): Listed<T> {
  return { count: items.length, items: items.slice(0, LISTED_MAX) };
}

async function openConflicts(
  repository: Repository,
  branch: string,
): Promise<{ merge: string; path: string }[]> {
  const { storedMerges } = await import("../merge/merging.js");
  const found: { merge: string; path: string }[] = [];
  for (const merge of await storedMerges(repository)) {
    const { name, into, sources } = merge.info;
    if (into !== branch && !sources.some((source) => source.branch === branch)) continue;
    try {
      for (const { path } of await merge.openPaths()) found.push({ merge: name, path });
    } catch (error) {
      // A resolver that is not at hand here, or a target that is gone: that the merge waits is known.
      if (!isAgstateError(error)) throw error;
      found.push({ merge: name, path: "" });
    }
  }
  return found;
}
