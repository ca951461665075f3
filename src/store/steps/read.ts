import { AgstateError } from "../../core/errors.js";
import type { ObjectId } from "../../core/ids.js";
import type { JsonValue } from "../../core/json.js";
import { isWithheld, type Withheld } from "../../core/withheld.js";
import type { LoadedCommit } from "../../objects/commit-reader.js";
import { decodeValue } from "../../objects/decode.js";
import { type ObjectReader, refuseWithheld } from "../../objects/reader.js";
import { parseStepRecord, type StepRecord } from "../../steps/record.js";
import type { RecordedStep } from "../../steps/run.js";
import { lineFrom } from "../line.js";
import type { Repository } from "../repository.js";

/** The names of the commits with which a run begins and ends. */
export const RUN_BEGINS = "agstate:run begins";
export const RUN_ENDS = "agstate:run ends";

/** Reads what a commit records of a step; null when it records none, or in a way that is not known. */
export async function recordOf(
  commit: LoadedCommit,
  objects: ObjectReader,
): Promise<StepRecord | null> {
  const record = await recordOrWithheld(commit, objects);
  return isWithheld(record) ? null : record;
}

/** The same, or what stands in the record's place where it is not told: that there is one is known. */
export async function recordOrWithheld(
  commit: LoadedCommit,
  objects: ObjectReader,
): Promise<StepRecord | Withheld | null> {
  const link = commit.root.step;
  if (commit.step === undefined || link === undefined) return null;
  const value: unknown = await decodeValue(objects, link);
  return isWithheld(value) ? value : parseStepRecord(value as JsonValue);
}

/** What a branch has on record of a run. */
export interface RunOnRecord {
  /** The commit's record with which it began; null when it has not. */
  readonly begin: StepRecord | null;
  readonly end: StepRecord | null;
  /** By number, rising; of each the last that was said. */
  readonly steps: readonly RecordedStep[];
  /** The traceparent of what was said last. */
  readonly trace: string | undefined;
}

/**
 * Reads back along first parents to where a run began.
 *
 * @throws AgstateError `ERASED`, `WITHHELD` where the record of a step is not told: it may be one that must not be done again;
 *   `ERASED` as well when it began where retention has taken away what was on record
 */
export async function readRun(
  repository: Repository,
  head: LoadedCommit,
  run: string,
): Promise<RunOnRecord> {
  // The cursor has never moved: no step is on record, so nothing is to be read.
  if (head.nextStep === 1) return NOT_BEGUN;
  const steps = new Map<number, Mutable<RecordedStep>>();
  const unread: ObjectId[] = [];
  let last: LoadedCommit | undefined;
  let end: StepRecord | null = null;
  let trace: string | undefined;
  for await (const { commit, objects } of lineFrom(repository, head.id, "step")) {
    last = commit;
    const found = await recordOrWithheld(commit, objects);
    if (isWithheld(found) && found.reason !== "expired") throw refuseWithheld(found);
    const record = isWithheld(found) ? null : found;
    if (record === null && commit.step !== undefined) unread.push(commit.id);
    if (record === null || commit.step === undefined || record.place?.run !== run) continue;
    trace ??= commit.trace;
    if (record.name === RUN_BEGINS) {
      // Records of the same bytes stay together: where it began may still be told, and not that it ended.
      if (end === null) await refuseIfOver(repository, run, head, unread);
      return { begin: record, end, steps: sorted(steps), trace };
    }
    const { number, action, status, key } = commit.step;
    const origin = key ?? commit.id;
    const later = steps.get(number);
    if (record.name === RUN_ENDS) end = record;
    else if (later !== undefined) later.origin = origin;
    else steps.set(number, { number, action, status, record, next: commit.nextStep, key, origin });
  }
  await refuseIfOver(repository, run, head, unread, last);
  return NOT_BEGUN;
}

const NOT_BEGUN: RunOnRecord = { begin: null, end: null, steps: [], trace: undefined };

/** Refuses a run of which retention has taken something away: begun anew, it would do again what it has done. */
async function refuseIfOver(
  repository: Repository,
  run: string,
  head: LoadedCommit,
  unread: readonly ObjectId[],
  last?: LoadedCommit,
): Promise<void> {
  if (unread.length === 0 && last?.cut === undefined) return;
  const { wasRun } = await import("../retention/runs.js");
  if (await wasRun(repository, run, unread, last)) throw runIsOver(run, head.id);
}

function runIsOver(run: string, head: ObjectId): AgstateError {
  return new AgstateError(
    "ERASED",
    `run ${run} was done before ${head}, and what is on record of it is gone, as its retention is over; begin another run, by another id`,
    { run, head },
  );
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

function sorted(steps: ReadonlyMap<number, RecordedStep>): RecordedStep[] {
  return [...steps.values()].sort((a, b) => a.number - b.number);
}
