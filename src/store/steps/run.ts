import { AgstateError } from "../../core/errors.js";
import { isJsonObject, type JsonValue } from "../../core/json.js";
import { spanning } from "../../core/telemetry.js";
import { normalize } from "../../objects/normalize.js";
import { inKeptOrder, STEP_RECORD_VERSION, type StepRecord } from "../../steps/record.js";
import { type Drift, RecordedRun, RunContext, type VersionDrift } from "../../steps/run.js";
import type { Branch } from "../branch.js";
import type { AcquireOptions } from "../lease/acquire.js";
import type { Lease } from "../lease/lease.js";
import type { Repository } from "../repository.js";
import { hooksOn } from "../reviews/hooks.js";
import { RUN_BEGINS, RUN_ENDS, readRun } from "./read.js";

export interface RunOptions {
  /** Which run of the branch it is; one that has ended gives its result again. Default `main`. */
  readonly id?: string;
  /** The version of the code, kept with the run's beginning; when it differs later, `onDrift` is told, and each `STEP_MISMATCH` says so. */
  readonly version?: string;
  readonly signal?: AbortSignal;
  /**
   * Acquires the lease on the branch before anything is done, and gives it back at the end: whoever
   * comes later knows it before it has paid for anything. `true` for the defaults.
   */
  readonly lease?: boolean | AcquireOptions;
  /**
   * Told of a version that is not the one with which the run began, before anything else, and of inputs
   * that differ from those on record after a read that was not recorded.
   */
  readonly onDrift?: (drift: Drift) => void;
}

/** Branches on which a run is under way in this process. */
const running = new WeakSet<Branch>();

/**
 * Does a piece of work whose steps are on record, or what is left of it.
 *
 * @throws what the work throws; AgstateError `STEP_MISMATCH`, `STEP_FENCED`, `STEP_IN_DOUBT`, `LEASE_HELD`, `LEASE_LOST`
 */
export async function runOn<Result>(
  repository: Repository,
  branch: Branch,
  work: (ctx: RunContext) => Promise<Result>,
  options: RunOptions,
): Promise<Result> {
  const { id = "main", version, signal: given, onDrift = () => undefined } = options;
  if (running.has(branch)) {
    throw new AgstateError(
      "STEP_FENCED",
      `a run is under way on this handle of ${branch.name}; wait for it, or open the branch again`,
      { branch: branch.name },
    );
  }
  running.add(branch);
  let release = () => {};
  let lease: Lease | undefined;
  try {
    if (options.lease) {
      lease = await branch.acquire({
        ...(given === undefined ? {} : { signal: given }),
        ...(options.lease === true ? {} : options.lease),
      });
    }
    const signals = [given, lease?.signal].filter((each) => each !== undefined);
    const signal = signals.length > 1 ? AbortSignal.any(signals) : signals[0];
    await branch.refresh();
    const journal = branch.stepJournal();
    release = journal.beginRun();
    const onRecord = await readRun(repository, branch.loadedHead, id);
    if (onRecord.end !== null) return inKeptOrder(onRecord.end.output) as Result;
    await journal.mayBegin();
    const { begin, steps, trace } = onRecord;
    const attributes = {
      ...journal.where,
      "agstate.run.id": id,
      ...(begin !== null && { "agstate.run.recorded_steps": steps.length }),
    };
    const { telemetry } = repository.context;
    const name = begin === null ? "run" : "resume";
    // What it goes on from may be of another trace.
    const links = trace === undefined ? [] : [trace];
    return await spanning(telemetry, name, { attributes, links }, async () => {
      const mark = (name: string, rest: { input?: JsonValue; output?: JsonValue }) =>
        journal.land({
          action: "read",
          status: "completed",
          keyed: false,
          record: {
            v: STEP_RECORD_VERSION,
            name,
            attempt: 1,
            ...rest,
            startedAt: journal.now(),
            place: { run: id, scope: [], index: -1 },
          },
        });
      if (begin === null) {
        await mark(RUN_BEGINS, version === undefined ? {} : { input: { version } });
      }
      const drift = begin === null ? undefined : versionDrift(begin, version);
      if (drift !== undefined) onDrift(drift);
      const log = new RecordedRun(steps, drift);
      const hooks = hooksOn(repository, branch);
      const shared = {
        run: id,
        journal,
        hooks,
        log,
        signal,
        onDrift,
        sawUnrecorded: false,
        working: new Map(),
      };
      const result = await work(new RunContext(shared));
      const left = log.left();
      if (left.length > 0) throw leftOver(log, branch.name, id, left);
      const output =
        result === undefined
          ? undefined
          : normalize(result, { maxBytes: journal.maxBytes, what: "run result" });
      await mark(RUN_ENDS, output === undefined ? {} : { output });
      await branch.flush();
      return (output === undefined ? result : inKeptOrder(output)) as Result;
    });
  } finally {
    release();
    running.delete(branch);
    // What was gathered is worth keeping, however the run ended; what it ended with goes before.
    if (branch.gathered > 0) await branch.flush().catch(() => undefined);
    // One that cannot be given back runs out.
    await lease?.release().catch(() => undefined);
  }
}

/** How the version of the code that goes on differs from the one that began; undefined when it is told and the same. */
function versionDrift({ input }: StepRecord, now: string | undefined): VersionDrift | undefined {
  const given = isJsonObject(input) ? input.version : undefined;
  const recorded = typeof given === "string" ? given : undefined;
  return now === undefined || now === recorded ? undefined : { kind: "version", recorded, now };
}

function leftOver(
  log: RecordedRun,
  branch: string,
  run: string,
  left: readonly { readonly number: number; readonly record: { readonly name: string } }[],
): AgstateError {
  const names = left.map(({ number, record }) => `${number} (${record.name})`);
  return log.mismatch(
    `run ${run} of ${branch} has steps on record that the code did not ask for: ${names.join(", ")}; run the code that recorded them, or begin another run`,
    { branch, run, steps: left.map(({ number }) => number) },
  );
}
