import { isAgstateError } from "../core/errors.js";
import type { JsonValue } from "../core/json.js";
import type { StepCall, StepHooks } from "../core/step-hooks.js";
import { NO_SPAN, type PayloadName, type Span } from "../core/telemetry.js";
import type { StepAction, StepStatus } from "../objects/commit.js";
import type { StateOperation } from "../objects/draft/operations.js";
import { normalize } from "../objects/normalize.js";
import type { Begun, Journal, Landed, StepQuestion } from "./journal.js";
import {
  failureOf,
  inKeptOrder,
  type Reliance,
  STEP_RECORD_VERSION,
  type StepFailure,
  type StepPlace,
  type StepRecord,
} from "./record.js";
import { withReliance } from "./reliance.js";
import { type Retrying, retrying } from "./retry.js";
import { withoutSecrets } from "./secrets.js";
import type { ReliedOn, StepSpec, Tool, ToolCall } from "./spec.js";
import { inDoubt, StepError } from "./step-error.js";

/** Does a step: records its intent where it has a side effect, calls the tool, and seals it. */
export class StepExecution<Output> {
  private readonly action: StepAction;
  private readonly keyed: boolean;
  /** As recorded: without secrets. */
  readonly input: JsonValue | undefined;
  private startedAt = 0;
  private span: Span = NO_SPAN;
  private recorded: "nothing" | "in part" | "sealed" = "nothing";
  /** The review by which it was let run. */
  private approval: string | undefined;
  private reliances: readonly Reliance[] = [];

  constructor(
    private readonly journal: Journal,
    private readonly hooks: readonly StepHooks[],
    private readonly spec: StepSpec<Output>,
    private readonly place: StepPlace | undefined,
    private readonly internal = false,
    /** Of a step that is gone on with: as of `continuedKey`. */
    private readonly origin?: string,
  ) {
    this.action = spec.action ?? "execute";
    this.keyed = this.action === "write" || this.action === "execute";
    if (spec.input !== undefined) {
      const input = normalize(spec.input, { maxBytes: journal.maxBytes, what: "step input" });
      this.input = withoutSecrets(input, spec.secrets ?? []);
    }
  }

  /**
   * @param begun of a step whose intent is on record already
   * @param made how many of the attempts that it may have were made by a process that died
   * @throws StepError when the tool failed; AgstateError `INVALID_VALUE` or `LIMIT_EXCEEDED` when its output
   *   cannot be recorded; `STEP_FENCED`
   */
  run(tool: Tool<Output>, begun?: Begun, made = 0): Promise<Output> {
    return this.telling(() => this.attempts(tool, begun, made));
  }

  private async attempts(
    tool: Tool<Output>,
    begun: Begun | undefined,
    made: number,
  ): Promise<Output> {
    const { spec, journal } = this;
    let number = begun?.number ?? null;
    let attempt = begun?.attempt ?? 0;
    this.startedAt = journal.now();
    const once = async () => {
      attempt++;
      await this.begin(number, attempt);
      if (this.keyed) {
        const landed = await this.land("started", number ?? undefined, attempt, {});
        number = landed.number;
      }
      return this.callTool(tool, number, attempt);
    };
    let output: Output;
    try {
      output = await retrying(once, this.attemptsLeft(made), (error) => {
        // What is ours, or was refused by a hook, is not the tool's failure.
        if (!(error instanceof ToolFailure)) return undefined;
        // Of an attempt that was not waited for the effect may still happen.
        return !(error.gaveUp && this.keyed) || spec.inDoubt === "retry";
      });
    } catch (error) {
      if (!(error instanceof ToolFailure)) throw error;
      return this.fail(error, number, attempt);
    }
    return this.sealWith(output, number, attempt);
  }

  /** How often it may still be tried again, when some of its attempts were made in an earlier process. */
  private attemptsLeft(made: number): Retrying {
    const { retry } = this.spec;
    if (retry === undefined || made === 0) return this.spec;
    return { ...this.spec, retry: { ...retry, attempts: Math.max(0, retry.attempts - made) } };
  }

  /** Keeps with the step that it relies on something outside. */
  async relyOn(given: ReliedOn): Promise<string | null> {
    const reliance = await this.journal.relianceOf(given, this.spec.signal);
    this.reliances = withReliance(this.reliances, reliance);
    return reliance.version;
  }

  /** Records what came out of a step that was done elsewhere, or before. */
  seal(output: Output, number: number, attempt: number): Promise<Output> {
    return this.telling(() => this.sealWith(output, number, attempt));
  }

  /** Tells of the step, from its beginning to its end. */
  private async telling(work: () => Promise<Output>): Promise<Output> {
    const { journal, spec, action, place } = this;
    // What the run itself records, such as the time, is told of by its commit alone.
    if (this.internal) return work();
    const span = journal.telemetry.span("execute_step", { traceparent: spec.trace });
    this.span = span;
    if (span.isRecording) {
      span.set({
        ...journal.where,
        "step.name": spec.name,
        "step.action": action,
        "agstate.step.base": journal.known,
        ...(place && { "agstate.run.id": place.run, "agstate.step.scope": place.scope.join("/") }),
        ...(action !== "inference" && {
          "gen_ai.operation.name": "execute_tool",
          "gen_ai.tool.name": spec.name,
        }),
      });
      span.payload(this.payloadName("input"), () => this.input);
    }
    try {
      const output = await span.within(work);
      span.end();
      return output;
    } catch (error) {
      // Of what was kept from beginning, such as by a rule, there was nothing to record.
      if (this.recorded === "in part") span.set({ "checkpoint.success": false });
      span.fail(error);
      throw error;
    }
  }

  private payloadName(what: "input" | "output"): PayloadName {
    if (this.action === "inference") return `agstate.step.${what}`;
    return what === "input" ? "gen_ai.tool.call.arguments" : "gen_ai.tool.call.result";
  }

  /** Records what came out. */
  private async sealWith(output: Output, number: number | null, attempt: number): Promise<Output> {
    const { spec } = this;
    if (!this.keyed && this.action === "read" && spec.memoize !== true) {
      if (this.reliances.length > 0) this.journal.carry(this.reliances);
      await this.tell((hooks) =>
        hooks.after?.(this.call(number, attempt), { status: "completed", output }),
      );
      return output;
    }
    let recorded: JsonValue | undefined;
    let described: Pick<StepRecord, "toolCalls" | "llmResponse">;
    let operations: readonly StateOperation[] | undefined;
    try {
      recorded = this.kept(output, "step output");
      this.span.payload(this.payloadName("output"), () => recorded);
      described = this.described(output);
      operations = spec.update?.(output);
    } catch (error) {
      // The effect has happened: it must be on record, and must not happen again.
      const rest = { error: failureOf(error), effect: "done" } as const;
      await this.land("failed", number ?? undefined, attempt, rest);
      await this.tell((hooks) =>
        hooks.after?.(this.call(number, attempt), { status: "failed", error }),
      );
      throw error;
    }
    const rest = { ...(recorded === undefined ? {} : { output: recorded }), ...described };
    let landed: Landed;
    try {
      landed = await this.land("completed", number ?? undefined, attempt, rest, operations);
    } catch (error) {
      // What came out may not be kept here; that it has happened must be.
      if (number !== null && isAgstateError(error, "RESIDENCY_REFUSED")) {
        const done = { error: notKept(failureOf(error)), effect: "done" } as const;
        await this.land("failed", number, attempt, done);
        await this.tell((hooks) =>
          hooks.after?.(this.call(number, attempt), { status: "failed", error }),
        );
      }
      throw error;
    }
    if (landed.sealed !== undefined) return this.adopt(landed.sealed, number, attempt);
    await this.tell((hooks) =>
      hooks.after?.(this.call(number, attempt), { status: "completed", output }),
    );
    // What a replay will give: the same value, in the same form.
    return recorded === undefined ? output : (inKeptOrder(recorded) as Output);
  }

  private described(output: Output): Pick<StepRecord, "toolCalls" | "llmResponse"> {
    const { toolCalls, llmResponse } = this.spec.describe?.(output) ?? {};
    const [calls, response] = [
      this.kept(toolCalls, "step's tool calls"),
      this.kept(llmResponse, "step's LLM response"),
    ];
    return {
      ...(calls === undefined ? {} : { toolCalls: calls }),
      ...(response === undefined ? {} : { llmResponse: response }),
    };
  }

  private kept(value: unknown, what: string): JsonValue | undefined {
    return value === undefined
      ? undefined
      : normalize(value, { maxBytes: this.journal.maxBytes, what });
  }

  /** Takes what is on record for what came out: whoever goes on after this reads that. */
  private async adopt(sealed: StepRecord, number: number | null, attempt: number): Promise<Output> {
    const error = sealed.error && new StepError(sealed.name, sealed.error);
    const output = inKeptOrder(sealed.output) as Output;
    await this.tell((hooks) =>
      hooks.after?.(
        this.call(number, attempt),
        error === undefined ? { status: "completed", output } : { status: "failed", error },
      ),
    );
    if (error !== undefined) throw error;
    return output;
  }

  private async fail(
    { cause, gaveUp }: ToolFailure,
    number: number | null,
    attempt: number,
  ): Promise<Output> {
    if (gaveUp && number !== null) {
      const key = this.journal.keyOf(number, this.origin);
      // Whether the effect happened is not known, so the intent stays open.
      throw inDoubt(this.journal, this.spec.name, { number, key }, { cause });
    }
    const error = new StepError(this.spec.name, failureOf(cause), { cause });
    if (this.keyed || this.action === "inference" || this.spec.memoize === true) {
      const landed = await this.landFailure(failureOf(cause), number ?? undefined, attempt);
      if (landed.sealed !== undefined) return this.adopt(landed.sealed, number, attempt);
    }
    await this.tell((hooks) =>
      hooks.after?.(this.call(number, attempt), { status: "failed", error }),
    );
    throw error;
  }

  /** Records why a tool failed; where its message may not be kept here, that it may not. */
  private async landFailure(
    error: StepFailure,
    number: number | undefined,
    attempt: number,
  ): Promise<Landed> {
    try {
      return await this.land("failed", number, attempt, { error });
    } catch (refused) {
      if (!isAgstateError(refused, "RESIDENCY_REFUSED")) throw refused;
      return this.land("failed", number, attempt, { error: notKept(error) });
    }
  }

  private async land(
    status: StepStatus,
    number: number | undefined,
    attempt: number,
    rest: Pick<StepRecord, "output" | "toolCalls" | "llmResponse" | "error" | "effect">,
    operations?: readonly StateOperation[],
  ): Promise<Landed> {
    const { spec, place, journal } = this;
    this.recorded = "in part";
    const landed = await journal.land({
      action: this.action,
      status,
      number,
      keyed: this.keyed,
      ...(number === undefined ? {} : { key: journal.keyOf(number, this.origin) }),
      operations: operations?.length === 0 ? undefined : operations,
      trace: spec.trace,
      record: {
        v: STEP_RECORD_VERSION,
        name: spec.name,
        attempt,
        ...(this.input === undefined ? {} : { input: this.input }),
        ...rest,
        startedAt: this.startedAt,
        ...(status === "started" ? {} : { completedAt: journal.now() }),
        ...(place === undefined ? {} : { place }),
        ...(this.approval === undefined ? {} : { approval: this.approval }),
        ...(status !== "started" && this.reliances.length > 0 && { reliesOn: this.reliances }),
      },
      // A seal says by what it was let run; only what begins must be let.
      ...(status === "started" ? { approval: this.approval } : {}),
    });
    if (status !== "started") this.recorded = "sealed";
    this.tellLanded(status, landed);
    return landed;
  }

  private tellLanded(status: StepStatus, { number, commit, sealed }: Landed): void {
    if (!this.span.isRecording) return;
    this.span.set({
      "step.seq": number,
      ...(this.keyed && { "agstate.step.key": this.journal.keyOf(number, this.origin) }),
    });
    if (status === "started") return;
    // What somebody else has sealed it with is not this one's.
    if (sealed === undefined && commit !== undefined)
      this.span.set({ "checkpoint.commit": commit });
    this.span.set({ "checkpoint.success": true });
  }

  private async callTool(
    tool: Tool<Output>,
    number: number | null,
    attempt: number,
  ): Promise<Output> {
    const { spec, journal } = this;
    this.span.set({ "step.attempt": attempt });
    const key = number === null ? null : journal.keyOf(number, this.origin);
    if (spec.signal === undefined && spec.timeoutMs === undefined) {
      try {
        return await tool(this.unlimitedCall(key, number, attempt));
      } catch (error) {
        throw new ToolFailure(error, false);
      }
    }
    const { signal, end } = limitOf(spec);
    try {
      const over = new Promise<never>((_, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      });
      signal.throwIfAborted();
      const relyOn = (resource: ReliedOn) => this.relyOn(resource);
      return await Promise.race([tool({ key, number, attempt, signal, relyOn }), over]);
    } catch (error) {
      throw new ToolFailure(error, signal.aborted);
    } finally {
      end();
    }
  }

  /** A call that nobody gives up; the signal that says so is made when it is asked for, which few do. */
  private unlimitedCall(key: string | null, number: number | null, attempt: number): ToolCall {
    let signal: AbortSignal | undefined;
    return {
      key,
      number,
      attempt,
      relyOn: (resource) => this.relyOn(resource),
      get signal() {
        signal ??= new AbortController().signal;
        return signal;
      },
    };
  }

  private call(number: number | null, attempt: number): StepCall {
    const { journal, spec, action, input } = this;
    return {
      workflow: journal.workflow,
      branch: journal.branch,
      name: spec.name,
      action,
      number,
      key: number === null ? null : journal.keyOf(number, this.origin),
      attempt,
      input,
      place: this.place ?? null,
      internal: this.internal,
    };
  }

  private async begin(number: number | null, attempt: number): Promise<void> {
    this.approval = undefined;
    const taken = this.journal.mayBegin();
    if (taken !== undefined) await taken;
    for (const hooks of this.hooks) {
      const grant = await hooks.before?.(this.call(number, attempt));
      if (grant) this.approval = grant.approval;
    }
  }

  /** What is asked of a person when it is in doubt. */
  question({ number, key, attempt }: Begun): StepQuestion {
    const { spec, action, input, place } = this;
    return { number, key, attempt, name: spec.name, action, input, place };
  }

  private async tell(what: (hooks: StepHooks) => void | Promise<void>): Promise<void> {
    for (const hooks of this.hooks) await what(hooks);
  }
}

/** Aborts when an attempt's time is over, or the caller gives up. */
function limitOf({ signal, timeoutMs }: { signal?: AbortSignal; timeoutMs?: number }): {
  readonly signal: AbortSignal;
  readonly end: () => void;
} {
  if (timeoutMs === undefined) {
    return { signal: signal ?? new AbortController().signal, end: () => undefined };
  }
  const limit = new AbortController();
  // Unlike that of AbortSignal.timeout it keeps the process alive: there may be nothing else that does.
  const timer = setTimeout(() => {
    limit.abort(new DOMException(`the step's ${timeoutMs} ms are over`, "TimeoutError"));
  }, timeoutMs);
  return {
    signal: signal === undefined ? limit.signal : AbortSignal.any([signal, limit.signal]),
    end: () => clearTimeout(timer),
  };
}

/** Carries what a tool threw, apart from what the step log itself raises. */
class ToolFailure extends Error {
  constructor(
    override readonly cause: unknown,
    /** Whether it was not waited for any longer. */
    readonly gaveUp: boolean,
  ) {
    super("the tool failed", { cause });
  }
}

/**
 * A failure without what its message says. What stands there is too short to be known as a copy, should it belong to another
 * region itself, and be met elsewhere.
 */
function notKept(error: StepFailure): StepFailure {
  return { ...error, message: "not kept here" };
}
