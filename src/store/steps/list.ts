import { AgstateError } from "../../core/errors.js";
import type { ObjectId } from "../../core/ids.js";
import type { JsonValue } from "../../core/json.js";
import { isWithheld, type Withheld } from "../../core/withheld.js";
import type { StepAction, StepStatus } from "../../objects/commit.js";
import type { LoadedCommit } from "../../objects/commit-reader.js";
import type { StateOperation } from "../../objects/draft/operations.js";
import { STEP_RECORD_VERSION, type StepFailure, type StepRecord } from "../../steps/record.js";
import { LINE_PAGE_COMMITS, lineFrom } from "../line.js";
import type { Repository } from "../repository.js";
import type { StepBranch } from "./handle.js";
import { recordOf, recordOrWithheld } from "./read.js";

/** A step, as far as the log tells of it. */
export interface StepDetails {
  readonly number: number;
  readonly name: string;
  readonly action: StepAction;
  /** `started`: begun and not sealed. */
  readonly status: StepStatus;
  readonly attempt: number;
  readonly input: JsonValue | undefined;
  /** SHA-256 of the input's canonical text, as hex; null when it has none. */
  readonly inputHash: string | null;
  readonly output: JsonValue | undefined;
  /** What the step's `describe` told. */
  readonly toolCalls: JsonValue | undefined;
  readonly llmResponse: JsonValue | undefined;
  readonly error: StepFailure | undefined;
  /** Its idempotency key; null when it has none. */
  readonly key: string | null;
  readonly startedAt: Date;
  readonly completedAt: Date | null;
  /** The review by which it was let run; null when it needed none. */
  readonly approval: string | null;
  /** The commit that says so. */
  readonly commit: string;
}

export interface StepFilter {
  readonly name?: string;
  readonly action?: StepAction;
  readonly status?: StepStatus;
  /** Begun at this time or later. */
  readonly since?: Date;
  readonly limit?: number;
}

const PAGE_MIN_COMMITS = 32;

/** Steps along first parents, newest first; of each number the last that was said of it. */
export async function* listSteps(
  repository: Repository,
  head: LoadedCommit,
  filter: StepFilter = {},
): AsyncGenerator<StepDetails, void, undefined> {
  const { name, action, status, since, limit = Number.POSITIVE_INFINITY } = filter;
  const seen = new Set<number>();
  let told = 0;
  // A step is a commit or two, and others may lie between.
  const page = Math.min(LINE_PAGE_COMMITS, Math.max(PAGE_MIN_COMMITS, limit * 4));
  for await (const { commit, objects } of lineFrom(repository, head.id, "step", page)) {
    if (told >= limit) return;
    const step = commit.step;
    if (step === undefined || seen.has(step.number)) continue;
    seen.add(step.number);
    if (action !== undefined && step.action !== action) continue;
    if (status !== undefined && step.status !== status) continue;
    const found = await recordOrWithheld(commit, objects);
    if (found === null) continue;
    const record = isWithheld(found) ? untold(commit, found) : found;
    if (name !== undefined && record.name !== name) continue;
    if (since !== undefined && record.startedAt < since.getTime()) continue;
    told++;
    yield detailsOf(commit, step, record);
  }
}

/** What is told of a step whose record is not: by its commit's headers it is known that there was one. */
function untold({ committerTime }: LoadedCommit, { reason }: Withheld): StepRecord {
  const name = reason === "erased" || reason === "expired" ? `[${reason}]` : "[withheld]";
  return { v: STEP_RECORD_VERSION, name, attempt: 1, startedAt: committerTime * 1000 };
}

function detailsOf(
  commit: LoadedCommit,
  step: NonNullable<LoadedCommit["step"]>,
  record: StepRecord,
): StepDetails {
  const { name, attempt, input, output, error, startedAt, completedAt, approval } = record;
  const { toolCalls, llmResponse } = record;
  return {
    number: step.number,
    name,
    action: step.action,
    status: step.status,
    attempt,
    input,
    inputHash: step.input ?? null,
    output,
    toolCalls,
    llmResponse,
    error,
    key: step.key ?? null,
    approval: approval ?? null,
    startedAt: new Date(startedAt),
    completedAt: completedAt === undefined ? null : new Date(completedAt),
    commit: commit.id,
  };
}

/**
 * Seals a step that was begun, or whose output could not be kept, by what somebody has found out of it.
 *
 * @throws AgstateError `INVALID_ARGUMENT` when it is not open; `REF_CONFLICT`, `STEP_FENCED`
 */
export async function sealStep(
  repository: Repository,
  branch: StepBranch,
  number: number,
  outcome: { readonly output: JsonValue | undefined } | { readonly error: StepFailure },
  by: {
    readonly author: string;
    readonly operations: readonly StateOperation[] | undefined;
  },
): Promise<void> {
  const { inFlight } = await branch.refresh();
  const notOpen = () =>
    new AgstateError(
      "INVALID_ARGUMENT",
      `step ${number} of ${branch.name} is not open; open are ${inFlight.join(", ") || "none"}`,
      { branch: branch.name, step: number, open: inFlight },
    );
  for await (const { commit, objects } of lineFrom(
    repository,
    branch.head.id as ObjectId,
    "step",
  )) {
    if (commit.step?.number !== number) continue;
    const record = await recordOf(commit, objects);
    if (!inFlight.includes(number) && record?.effect !== "done") throw notOpen();
    if (record === null) break;
    const journal = branch.stepJournal();
    journal.begin();
    const { output: _, error: __, effect: ___, ...begun } = record;
    await journal.land({
      action: commit.step.action,
      status: "error" in outcome ? "failed" : "completed",
      number,
      ...by,
      keyed: commit.step.key !== undefined,
      // Of a step that came with another branch's history it is that branch's.
      key: commit.step.key,
      record: {
        ...begun,
        v: STEP_RECORD_VERSION,
        ...("error" in outcome
          ? { error: outcome.error }
          : outcome.output === undefined
            ? {}
            : { output: outcome.output }),
        completedAt: journal.now(),
      },
    });
    return;
  }
  if (!inFlight.includes(number)) throw notOpen();
  throw new AgstateError(
    "INVALID_ARGUMENT",
    `step ${number} of ${branch.name} has no record that this version can read`,
    { branch: branch.name, step: number },
  );
}
