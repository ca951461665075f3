import { isAgstateError } from "../../core/errors.js";
import type { ObjectId } from "../../core/ids.js";
import { isWithheld } from "../../core/withheld.js";
import type { LoadedCommit } from "../../objects/commit-reader.js";
import { checkResource } from "../../staleness/resource.js";
import type { Reliance } from "../../steps/record.js";
import { lineFrom, type OnLine } from "../line.js";
import type { Repository } from "../repository.js";
import { recordOrWithheld } from "../steps/read.js";

/** A session of a branch: what came since its last envelope. */
export interface Session {
  /** The commit that brought the envelope which the head has; null where it has none. */
  readonly boundary: LoadedCommit | null;
  /** The steps since, newest first, each as often as something was said of it. */
  readonly steps: readonly SessionStep[];
  /** What they relied on, in the order in which it was put on record. */
  readonly reliances: readonly StepReliance[];
  /** Numbers of steps of which it is not told what they relied on, rising. */
  readonly untold: readonly number[];
}

/** A commit that tells of a step. */
export interface SessionStep {
  readonly number: number;
  readonly commit: ObjectId;
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
  const steps: SessionStep[] = [];
  const untold = new Set<number>();
  const found: StepReliance[][] = [];
  let boundary: LoadedCommit | null = null;
  // Without an envelope and without a step there is nothing to be found.
  if (envelope === undefined && head.nextStep === 1) return NOTHING;
  for await (const { commit, objects } of lineFrom(repository, head.id, "step")) {
    if (commit.root.envelope?.id !== envelope) break;
    // A branch that began in the middle of another's history has that as its own.
    if (envelope !== undefined) boundary = commit;
    if (commit.step === undefined) continue;
    const { number } = commit.step;
    steps.push({ number, commit: commit.id });
    const reliances = await reliancesIn({ commit, objects });
    if (reliances === null) untold.add(number);
    else found.push(reliances.map((reliance) => ({ step: number, reliance })));
  }
  return {
    boundary,
    steps,
    reliances: found.reverse().flat(),
    untold: [...untold].sort((a, b) => a - b),
  };
}

const NOTHING: Session = { boundary: null, steps: [], reliances: [], untold: [] };

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
