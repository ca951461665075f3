import { setTimeout as sleep } from "node:timers/promises";
import { AgstateError } from "../../core/errors.js";
import { quoteForMessage } from "../../core/names.js";
import { shareOf } from "../../pressure/reasons.js";
import { Sampler } from "../../pressure/sampler.js";
import { DEFAULT_THRESHOLDS } from "../../pressure/thresholds.js";
import type { Absence, PressureSample } from "../../pressure/types.js";
import { intervalMsOf } from "../duration.js";
import { reportWarning } from "../output.js";
import { cutTo, WIDTH } from "../render/cut.js";
import { escapeLine } from "../render/escape.js";
import { blockOf, lineOf, type PressureView } from "../render/pressure.js";
import { wrap } from "../render/wrap.js";
import type { Session } from "../session.js";

interface Options {
  readonly pid?: string;
  readonly interval: string;
  readonly count?: number;
  readonly once?: boolean;
  readonly usage?: string;
}

/** `agstate pressure`: what is seen of a process's memory and processors, until Ctrl-C. */
export async function run(
  session: Session,
  _args: readonly string[],
  options: Options,
): Promise<undefined> {
  const pid = options.pid === undefined ? "self" : pidOf(options.pid);
  const intervalMs = intervalMsOf(options.interval);
  const usage = options.usage === undefined ? DEFAULT_THRESHOLDS.usage : usageOf(options.usage);
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
  const isOnce = options.once === true;
  const sampler = new Sampler({ pid });
  const screen = new Screen(session, isOnce);
  let first: PressureSample | null = null;
  let left = isOnce ? 1 : (options.count ?? Number.POSITIVE_INFINITY);
  try {
    while (!stop.signal.aborted) {
      const sample = sampler.sample();
      // Of another process than the one that was asked for nothing is said.
      if (pid !== "self" && !isRunning(pid)) return ended(session, pid);
      // What happened before is all that a single look can tell of.
      if (!isOnce) first ??= sample;
      const date = new Date();
      await screen.show({ sample, first, date, pid, usage }, sampler.absences());
      left--;
      const isNothing = sample.levels.length === 0 && sample.memory === null && sample.cpu === null;
      if (left <= 0 || isNothing) return;
      await sleep(intervalMs, undefined, { signal: stop.signal }).catch(() => undefined);
    }
  } finally {
    sampler.close();
  }
}

/** Where samples go: on a terminal each in the place of the one before. */
class Screen {
  private readonly isLive: boolean;
  private drawn = 0;
  private shown = 0;

  constructor(
    private readonly session: Session,
    private readonly isOnce: boolean,
  ) {
    const isTerminal = process.stdout.isTTY === true && process.env.TERM !== "dumb";
    this.isLive = isTerminal && !isOnce;
  }

  async show(view: PressureView, absences: readonly Absence[]): Promise<void> {
    const { out } = this.session;
    if (out.json) return this.showJson(view, absences);
    const notes = absences.flatMap(({ message }) =>
      wrap(`note: ${escapeLine(message)}`, WIDTH).map((line) => out.paint.dim(line)),
    );
    if (!this.isLive && !this.isOnce) {
      for (const line of [...notes, lineOf(view, out.paint)]) await out.line(line);
      return;
    }
    const { columns = WIDTH, rows = Number.POSITIVE_INFINITY } = process.stdout;
    const block = blockOf(view, out.paint);
    if (!this.isLive) return out.raw(`${[...notes, ...block].join("\n")}\n`);
    if (this.drawn === 0) out.note("Ctrl-C ends it.");
    // A line that wraps, or scrolls out of sight, could not be drawn over.
    const lines = block.slice(0, rows - 1).map((line) => clip(line, columns));
    const over = this.drawn === 0 ? "" : `\u001b[${this.drawn}A\u001b[0J`;
    this.drawn = lines.length;
    await out.raw(`${over}${[...notes, ...lines].join("\n")}\n`);
  }

  private async showJson({ sample, date }: PressureView, absences: readonly Absence[]) {
    const levels = sample.levels.map((level) => ({ ...level, ratio: shareOf(level) }));
    const isTold = this.shown++ === 0 || absences.length > 0;
    const value = { date, ...sample, levels, ...(isTold && { absences }) };
    await this.session.out.value(value);
  }
}

/** Cuts a line to the columns of a terminal; one that is narrower than usual goes without colours. */
function clip(line: string, columns: number): string {
  if (columns >= WIDTH) return line;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the colours that paint writes.
  return cutTo(line.replace(/\u001b\[\d+m/g, ""), columns);
}

function ended(session: Session, pid: number): undefined {
  reportWarning(`process ${pid} has ended`, session.out.json, { pid });
}

/** @throws AgstateError `INVALID_ARGUMENT` where it is no number of a process that runs. */
function pidOf(text: string): number {
  const pid = /^[1-9]\d{0,9}$/.test(text) ? Number(text) : undefined;
  if (pid !== undefined && isRunning(pid)) return pid;
  throw new AgstateError(
    "INVALID_ARGUMENT",
    pid === undefined
      ? `the process ${quoteForMessage(text)} is not a number; give its id to --pid, such as 4711`
      : `there is no process ${pid}; give the id of one that runs to --pid`,
    { pid: text },
  );
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // It is there, and somebody else's.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** A part of a limit as a ratio: `85` or `85%` is 0.85. */
function usageOf(text: string): number {
  const percent = /^\d{1,3}(\.\d{1,3})?%?$/.test(text) ? Number.parseFloat(text) : Number.NaN;
  if (percent > 0 && percent <= 100) return percent / 100;
  throw new AgstateError(
    "INVALID_ARGUMENT",
    `the usage ${quoteForMessage(text)} is not a part of a limit; give per cent above 0, and 100 at most, such as 85`,
    { usage: text },
  );
}
