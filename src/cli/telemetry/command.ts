import { constants } from "node:os";
import { basename } from "node:path";
import { diagnoseTo, type ProcessEnd, ProcessSpan } from "../../tracing/process.js";
import { reportWarning } from "../output.js";
import { escapeLine } from "../render/escape.js";
import { flush } from "./flush.js";
import { type Provider, startProviders } from "./providers.js";
import { type Environment, misfitOf, type Wanted } from "./wanted.js";

/** The longest that the end of a command waits for the collector, in milliseconds; `OTEL_EXPORTER_OTLP_TIMEOUT` may say less. */
const FLUSH_MAX_MS = 2_000;

const SIGNALS = ["SIGINT", "SIGTERM"] as const;

/** A command that is told of: a span for all of it, and the sending of what was told when it ends. */
export class TracedCommand {
  private ended: Promise<boolean> | undefined;
  private readonly span: ProcessSpan;
  private readonly interrupted: (signal: NodeJS.Signals) => void;

  private constructor(
    private readonly providers: readonly Provider[],
    private readonly flushMs: number,
    environment: Environment,
  ) {
    this.span = new ProcessSpan("agstate", basename(process.execPath), process.pid, environment);
    this.interrupted = (signal) => void this.dieOf(signal);
    for (const signal of SIGNALS) process.on(signal, this.interrupted);
  }

  /**
   * Begins one, or tells in a line of standard error why it cannot be.
   *
   * What a collector does later is nothing that a command tells of: `OTEL_LOG_LEVEL` shows it.
   */
  static async begin(wanted: Wanted, environment: Environment): Promise<TracedCommand | undefined> {
    diagnoseTo(
      (line) => void process.stderr.write(`${escapeLine(line)}\n`),
      environment.OTEL_LOG_LEVEL?.trim() ?? "none",
    );
    const misfit = misfitOf(wanted, environment);
    if (misfit !== undefined) return warn(misfit);
    const limit = Number(environment.OTEL_EXPORTER_OTLP_TIMEOUT);
    const flushMs = limit > 0 && limit < FLUSH_MAX_MS ? limit : FLUSH_MAX_MS;
    try {
      return new TracedCommand(await startProviders(wanted, environment), flushMs, environment);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      return warn(
        code === "ERR_MODULE_NOT_FOUND"
          ? `exporting needs packages that are not installed; npm install ${packagesOf(wanted).join(" ")} beside agstate`
          : `OpenTelemetry's SDK cannot be started: ${(error as Error).message}`,
      );
    }
  }

  /** Does the command's work within its span. */
  do<T>(work: () => T): T {
    return this.span.do(work);
  }

  /** Names what is done by the words of the command, without what was given to it. */
  name(words: readonly string[]): void {
    this.span.name(words.join(" "));
  }

  /**
   * Ends the command's span, and sends all that was told, within the limit.
   *
   * @returns whether nothing is left that would hold the process
   */
  end(end: ProcessEnd): Promise<boolean> {
    this.ended ??= this.send(end);
    return this.ended;
  }

  private async send(end: ProcessEnd): Promise<boolean> {
    this.span.end(end);
    const settled = await flush(this.providers, this.flushMs);
    for (const signal of SIGNALS) process.off(signal, this.interrupted);
    return settled;
  }

  /** Ends the process by the signal that it got, as if nobody had listened; at once when all is sent already, or a second one comes. */
  private async dieOf(signal: NodeJS.Signals): Promise<void> {
    // A command that listens as well ends by itself.
    if (process.listenerCount(signal) > 1) return;
    for (const each of SIGNALS) process.off(each, this.interrupted);
    if (this.ended === undefined) {
      await this.end({ exitCode: 128 + constants.signals[signal], errorType: signal });
    }
    process.kill(process.pid, signal);
  }
}

function warn(text: string): undefined {
  reportWarning(`nothing is traced: ${text}`, process.argv.includes("--json"));
}

function packagesOf({ traces, metrics }: Wanted): string[] {
  const names = [
    "sdk-trace-node",
    "resources",
    ...(traces === undefined ? [] : ["exporter-trace-otlp-http"]),
    ...(metrics === undefined ? [] : ["sdk-metrics", "exporter-metrics-otlp-http"]),
  ];
  return names.map((name) => `@opentelemetry/${name}`);
}
