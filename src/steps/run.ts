import { setTimeout as wait } from "node:timers/promises";
import { AgstateError } from "../core/errors.js";
import type { JsonValue } from "../core/json.js";
import { quoteForMessage } from "../core/names.js";
import type { StepHooks } from "../core/step-hooks.js";
import { firstWithheld } from "../core/withheld.js";
import { canonicalText } from "../objects/canonical.js";
import type { StepAction, StepStatus } from "../objects/commit.js";
import type { StateOperation } from "../objects/draft/operations.js";
import { digestText } from "../objects/hash.js";
import { refuseWithheld } from "../objects/reader.js";
import { StepExecution } from "./execute.js";
import { firstDifference } from "./first-difference.js";
import type { Journal } from "./journal.js";
import { UPDATE_STEP } from "./phases.js";
import { inKeptOrder, type StepRecord } from "./record.js";
import { resumeStep } from "./resume.js";
import { classified, type ReliedOn, type StepSpec, type Tool } from "./spec.js";
import { StepError } from "./step-error.js";

/** A step as the log has it: the last that was said of its number. */
export interface RecordedStep {
  readonly number: number;
  readonly action: StepAction;
  readonly status: StepStatus;
  readonly record: StepRecord;
  /** The number that the next step took when that was said. */
  readonly next: number;
  /** The key that was said last; undefined when it has none. */
  readonly key: string | undefined;
  /** With what it began: as of `continuedKey`. */
  readonly origin: string;
}

/** An input that is not what was recorded, after a read that was not. */
export interface InputDrift {
  readonly kind: "input";
  readonly step: number;
  readonly name: string;
  readonly recorded: JsonValue | undefined;
  readonly now: JsonValue | undefined;
}

/** A run that goes on with another version of the code than it began with. */
export interface VersionDrift {
  readonly kind: "version";
  /** Undefined when it began with none. */
  readonly recorded: string | undefined;
  readonly now: string;
}

/** What differs from what is on record, and does not end the run. */
export type Drift = InputDrift | VersionDrift;

/** What all contexts of a run share. */
export interface RunShared {
  readonly run: string;
  readonly journal: Journal;
  readonly hooks: readonly StepHooks[];
  readonly log: RecordedRun;
  readonly signal: AbortSignal | undefined;
  readonly onDrift: (drift: Drift) => void;
  /** Whether the run has read something that is not recorded, so that inputs may differ. */
  sawUnrecorded: boolean;
  /** Steps whose tools are at work, and the scopes that they were asked for in. */
  readonly working: Map<Pick<StepExecution<unknown>, "relyOn">, readonly string[]>;
}

/** The steps that a run has on record, each to be matched once. */
export class RecordedRun {
  /** Those not matched yet by their scope, by number, rising: a replay takes from the front. */
  private readonly untaken = new Map<string, RecordedStep[]>();

  /** @param version that of the code which goes on, where it is not the one that began the run */
  constructor(
    private readonly steps: readonly RecordedStep[],
    private readonly version?: VersionDrift,
  ) {
    for (const step of steps) {
      const key = keyOf(step.record.place?.scope);
      const inScope = this.untaken.get(key);
      if (inScope === undefined) this.untaken.set(key, [step]);
      else inScope.push(step);
    }
  }

  /** The error of code that is not what is on record; it names both versions where they differ. */
  mismatch(problem: string, details: Readonly<Record<string, unknown>>): AgstateError {
    const { version } = this;
    if (version === undefined) return new AgstateError("STEP_MISMATCH", problem, details);
    const { recorded, now } = version;
    const was = recorded === undefined ? "no version" : `version ${quoteForMessage(recorded)}`;
    return new AgstateError(
      "STEP_MISMATCH",
      `${problem}; the run began with ${was}, and this is version ${quoteForMessage(now)}`,
      { ...details, version: { recorded: recorded ?? null, now } },
    );
  }

  /**
   * The record of a step that is asked for: the one at its place if that has its name, else the
   * first of its name in the scope; undefined when it is new.
   *
   * @throws AgstateError `STEP_MISMATCH` when another step was recorded in its place
   */
  take(scope: readonly string[], index: number, name: string): RecordedStep | undefined {
    const inScope = this.untaken.get(keyOf(scope)) ?? [];
    const place = inScope.findIndex((step) => step.record.place?.index === index);
    const atPlace = inScope[place];
    const found =
      atPlace?.record.name === name
        ? place
        : inScope.findIndex((step) => step.record.name === name);
    if (found >= 0) return inScope.splice(found, 1)[0];
    if (atPlace !== undefined) throw this.renamed(atPlace, name, scope);
    return undefined;
  }

  /**
   * Whether the run went on after a step: whatever became of it was taken into account by a step
   * that was begun later in its scope, around it or in parallel parts that came after it.
   */
  wentOnAfter({ next, record: { place } }: RecordedStep): boolean {
    const scope = place?.scope ?? [];
    return this.steps.some(({ number, record }) => {
      const other = record.place?.scope ?? [];
      const depth = Math.min(scope.length, other.length);
      return number >= next && sameScope(scope.slice(0, depth), other.slice(0, depth));
    });
  }

  left(): RecordedStep[] {
    const left = [...this.untaken.values()].flat();
    // What a step relied on may be on record by itself or with the step, as it came when others were at work.
    const counted = left.filter(({ record }) => record.name !== RELY_ON);
    return counted.sort((a, b) => a.number - b.number);
  }

  private renamed(recorded: RecordedStep, name: string, scope: readonly string[]): AgstateError {
    const { number, record } = recorded;
    const where = scope.length === 0 ? "" : ` in ${scope.join("/")}`;
    return this.mismatch(
      `step ${number}${where} was recorded as ${record.name}, and the code asks for ${name} in its place; run the code that recorded it, or begin another run (parallel steps that are not told apart by ctx.all may come in another order, too)`,
      { step: number, recorded: record.name, asked: name, scope: [...scope] },
    );
  }
}

function keyOf(scope: readonly string[] = []): string {
  return JSON.stringify(scope);
}

function sameScope(a: readonly string[] = [], b: readonly string[]): boolean {
  return a.length === b.length && a.every((part, i) => part === b[i]);
}

/** What a durable run works with: everything that must not happen twice, or come out otherwise, goes by it. */
export class RunContext {
  private asked = 0;
  private groups = 0;
  /** For what is relied on outside of steps, by its scope. */
  private readonly beside = new Map<string, RunContext>();

  /** @internal Use `workflow.run`. */
  constructor(
    private readonly shared: RunShared,
    private readonly scope: readonly string[] = [],
  ) {}

  /** Aborts when the run is given up. */
  get signal(): AbortSignal | undefined {
    return this.shared.signal;
  }

  /**
   * Does a step, or gives what is on record of it.
   *
   * @throws StepError when the tool failed; AgstateError `STEP_MISMATCH`, `STEP_IN_DOUBT`, `STEP_FENCED`
   */
  async step<Output>(spec: StepSpec<Output>, tool: Tool<Output>): Promise<Output> {
    return this.take(classified(this.shared.hooks, spec), tool, false);
  }

  private async take<Output>(
    spec: StepSpec<Output>,
    tool: Tool<Output>,
    internal: boolean,
  ): Promise<Output> {
    const { shared, scope } = this;
    const { signal } = shared;
    const whole = signal === undefined || spec.signal !== undefined ? spec : { ...spec, signal };
    if (spec.action === "read" && spec.memoize !== true) {
      shared.sawUnrecorded = true;
      const read = new StepExecution(shared.journal, shared.hooks, whole, undefined);
      return this.working(read, () => read.run(tool));
    }
    const index = this.asked++;
    const recorded = shared.log.take(scope, index, spec.name);
    const place = recorded?.record.place ?? { run: shared.run, scope, index };
    // Rules may have changed since: what is on record keeps its class, unless it is done from the start.
    const byRule = !internal && shared.hooks.some(({ classify }) => classify !== undefined);
    const keeps = byRule && recorded !== undefined && recorded.status !== "failed";
    const done = keeps ? { ...whole, action: recorded.action } : whole;
    const { journal, hooks } = shared;
    const origin = recorded?.origin;
    const execution = new StepExecution(journal, hooks, done, place, internal, origin);
    const working = <T>(work: () => Promise<T>) =>
      internal ? work() : this.working(execution, work);
    if (recorded === undefined) return working(() => execution.run(tool));
    // Code that goes on with a part of what is on record would take that for all.
    const hidden = firstWithheld(recorded.record as unknown as JsonValue);
    if (hidden !== null) throw refuseWithheld(hidden);
    const action = byRule ? recorded.action : (spec.action ?? "execute");
    this.compare(recorded, action, execution.input);
    const { number, status, record } = recorded;
    if (status === "completed") return inKeptOrder(record.output) as Output;
    const key = recorded.key ?? journal.keyOf(number, origin);
    const begun = { number, attempt: record.attempt, key };
    if (status === "started") {
      return working(() => resumeStep(execution, journal, done, tool, begun));
    }
    // The code that came after has seen the error, and must see it again.
    const isFinal = record.effect === "done" || shared.log.wentOnAfter(recorded);
    if (isFinal && record.error !== undefined) throw new StepError(record.name, record.error);
    return working(() => execution.run(tool, begun));
  }

  private async working<Output>(
    execution: Pick<StepExecution<unknown>, "relyOn">,
    work: () => Promise<Output>,
  ): Promise<Output> {
    const { working } = this.shared;
    working.set(execution, this.scope);
    try {
      return await work();
    } finally {
      working.delete(execution);
    }
  }

  /**
   * Records that what is done here rests on something outside. Called while tools of this context's steps are at work, it
   * is kept with each of these steps, since any of them may have read it; between steps it is on record by itself.
   *
   * @returns the version that is on record; null when it is not known
   * @throws AgstateError `INVALID_VALUE`, `INVALID_ARGUMENT`, `LIMIT_EXCEEDED`
   */
  async relyOn(resource: ReliedOn): Promise<string | null> {
    const { shared, scope } = this;
    const steps = [...shared.working].filter(([, other]) => isWithin(other, scope));
    if (steps.length === 0) return this.relyApart(resource);
    const versions = await Promise.all(steps.map(([step]) => step.relyOn(resource)));
    return versions[0] ?? null;
  }

  /** In a scope of the resource's own, so that all keep their places in whatever order they are asked for. */
  private relyApart(resource: ReliedOn): Promise<string | null> {
    const scope = `${RELY_ON}/${digestText(`${resource.type} ${resource.id}`).slice(0, 16)}`;
    let beside = this.beside.get(scope);
    if (beside === undefined) {
      beside = new RunContext(this.shared, [...this.scope, scope]);
      this.beside.set(scope, beside);
    }
    return beside.take(
      { ...memoized(RELY_ON), input: resource },
      ({ relyOn }) => relyOn(resource),
      true,
    );
  }

  /**
   * Does parts in parallel, each with a context of its own, so that their steps are told apart by
   * the part's name and not by the order in which they happen to come. Waits for all of them.
   */
  async all<Parts extends { readonly [name: string]: (ctx: RunContext) => Promise<unknown> }>(
    parts: Parts,
  ): Promise<{ [Name in keyof Parts]: Awaited<ReturnType<Parts[Name]>> }> {
    const group = this.groups++;
    const names = Object.keys(parts);
    const settled = await Promise.allSettled(
      names.map(async (name) => {
        const part = parts[name] as (ctx: RunContext) => Promise<unknown>;
        return part(new RunContext(this.shared, [...this.scope, `${group}.${name}`]));
      }),
    );
    const outputs: Record<string, unknown> = {};
    for (const [i, one] of settled.entries()) {
      if (one.status === "rejected") throw one.reason;
      outputs[names[i] as string] = one.value;
    }
    return outputs as { [Name in keyof Parts]: Awaited<ReturnType<Parts[Name]>> };
  }

  /** Edits the branch's state, once. */
  async update(operations: readonly StateOperation[]): Promise<void> {
    const spec = { ...memoized(UPDATE_STEP), input: operations, update: () => operations };
    await this.take(spec, () => null, true);
  }

  /** The time in milliseconds since the Unix epoch, as it was when the run first asked. */
  now(): Promise<number> {
    return this.take(memoized("agstate:now"), () => this.shared.journal.now(), true);
  }

  /** A number from 0 to 1, the same on every replay. */
  random(): Promise<number> {
    return this.take(memoized("agstate:random"), () => Math.random(), true);
  }

  /** A random UUID, the same on every replay. */
  uuid(): Promise<string> {
    return this.take(memoized("agstate:uuid"), () => crypto.randomUUID(), true);
  }

  /** Waits so many milliseconds in all, however often the process dies meanwhile. */
  async sleep(ms: number): Promise<void> {
    const { journal, signal } = this.shared;
    const until = await this.take(
      { ...memoized("agstate:sleep"), input: { ms } },
      () => journal.now() + ms,
      true,
    );
    const left = until - journal.now();
    if (left > 0) await wait(left, undefined, signal === undefined ? {} : { signal });
  }

  private compare(recorded: RecordedStep, action: StepAction, input: JsonValue | undefined): void {
    const { number, record } = recorded;
    const text = (value: JsonValue | undefined) =>
      value === undefined ? "nothing" : canonicalText(value);
    const [was, is] = [text(record.input), text(input)];
    if (action === recorded.action && was === is) return;
    if (action === recorded.action && this.shared.sawUnrecorded) {
      const { name, input: before } = record;
      this.shared.onDrift({ kind: "input", step: number, name, recorded: before, now: input });
      return;
    }
    if (
      this.shared.journal.hidesInputs(action) ||
      this.shared.journal.hidesInputs(recorded.action)
    ) {
      throw this.shared.log.mismatch(
        `step ${number} (${record.name}) was recorded as ${recorded.action}, and the code asks for ${action}, or with another input, which belongs to another region and is not shown`,
        { step: number, name: record.name },
      );
    }
    if (action !== recorded.action) {
      throw this.shared.log.mismatch(
        `step ${number} (${record.name}) was recorded as ${recorded.action}, and the code asks for ${action}`,
        { step: number, name: record.name, recorded: recorded.action, asked: action },
      );
    }
    // Errors end up in logs: where to look is told, not what is there.
    const path = firstDifference(record.input, input) ?? "";
    const where = path === "" ? "as a whole" : `first at ${quoteForMessage(path)}`;
    throw this.shared.log.mismatch(
      `step ${number} (${record.name}) was recorded with another input than the code gives, which differs ${where}; agstate step show ${number} tells the recorded one`,
      { step: number, name: record.name, path },
    );
  }
}

/** The step as which it is on record that a run relies on something, outside of its other steps. */
const RELY_ON = "agstate:rely on";

function isWithin(scope: readonly string[], outer: readonly string[]): boolean {
  return sameScope(scope.slice(0, outer.length), outer);
}

function memoized(name: string) {
  return { name, action: "read", memoize: true } as const;
}
