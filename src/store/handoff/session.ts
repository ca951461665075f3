import { isAgstateError } from "../../core/errors.js";
import type { ObjectId } from "../../core/ids.js";
import { isWithheld } from "../../core/withheld.js";
import type { LoadedCommit } from "../../objects/commit-reader.js";
import { CANONICAL_REF } from "../../refs/names.js";
import { checkResource } from "../../staleness/resource.js";
import type { Reliance } from "../../steps/record.js";
import { lineFrom, type OnLine } from "../line.js";
import type { Repository } from "../repository.js";
import { recordOrWithheld } from "../steps/read.js";

/** A session of a branch: what came since its last envelope. */
export interface Session {
  /** The commit that brought the envelope which the head has; null where it has none. */
  readonly boundary: LoadedCommit | null;
  /** Numbers of the steps since, or of those that canonical does not have where there was no envelope; rising, each once. */
  readonly steps: readonly number[];
  /** What has those that are not counted. */
  readonly since: readonly ObjectId[];
  /** What they relied on, in the order in which it was put on record. */
  readonly reliances: readonly StepReliance[];
  /** Steps of which it is not told what they relied on, as their records are erased or elsewhere. */
  readonly untold: readonly number[];
}

/** What a step relied on. */
export interface StepReliance {
  readonly step: number;
  readonly reliance: Reliance;
}

/**
 * Reads back along first parents to the commit that brought the head's envelope, or to the root.
 *
 * @throws AgstateError `MISSING_OBJECT`, `CORRUPT_OBJECT`
 */
export async function readSession(repository: Repository, head: LoadedCommit): Promise<Session> {
  const envelope = head.root.envelope?.id;
  const steps = new Set<number>();
  const untold = new Set<number>();
  const reliances: StepReliance[] = [];
  let boundary: LoadedCommit | null = null;
  // Without an envelope and without a step there is nothing to be found.
  if (envelope === undefined && head.nextStep === 1) return NOTHING;
  const own = envelope === undefined ? await ownCommits(repository, head) : null;
  for await (const { commit, objects } of lineFrom(repository, head.id, "step")) {
    if (commit.root.envelope?.id !== envelope) break;
    // A branch that began in the middle of another's history has that as its own.
    if (envelope !== undefined) boundary = commit;
    if (commit.step === undefined) continue;
    const { number } = commit.step;
    if (own === null || own.ids.has(commit.id)) steps.add(number);
    const found = await reliancesIn({ commit, objects });
    if (found === null) untold.add(number);
    else reliances.unshift(...found.map((reliance) => ({ step: number, reliance })));
  }
  const rising = (numbers: ReadonlySet<number>) => [...numbers].sort((a, b) => a - b);
  const since = boundary === null ? (own?.since ?? []) : [boundary.id];
  return { boundary, since, steps: rising(steps), reliances, untold: rising(untold) };
}

const NOTHING: Session = { boundary: null, since: [], steps: [], reliances: [], untold: [] };

/** What a branch has that canonical has not; all, of canonical itself. */
async function ownCommits(
  { refs, history }: Repository,
  head: LoadedCommit,
): Promise<{ readonly ids: ReadonlySet<ObjectId>; readonly since: readonly ObjectId[] } | null> {
  const canonical = (await refs.row(CANONICAL_REF))?.id ?? null;
  if (canonical === null || canonical === head.id) return null;
  const since = [canonical];
  return { ids: new Set(await history.notReached(head.id, since)), since };
}

/** What a commit's step says that it relied on; null where that is not told, or in a way that nobody can read. */
async function reliancesIn({ commit, objects }: OnLine): Promise<readonly Reliance[] | null> {
  const record = await recordOrWithheld(commit, objects);
  if (isWithheld(record)) return null;
  const reliesOn: unknown = record?.reliesOn;
  if (reliesOn === undefined) return [];
  return Array.isArray(reliesOn) && reliesOn.every(isReliance) ? reliesOn : null;
}

/** Records that callers made themselves are of any form. */
function isReliance(given: unknown): given is Reliance {
  try {
    checkResource(given, { now: 0 });
    return true;
  } catch (error) {
    if (isAgstateError(error)) return false;
    throw error;
  }
}
