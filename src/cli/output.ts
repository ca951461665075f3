import { once } from "node:events";
import { AgstateError, isAgstateError } from "../core/errors.js";
import { toldMessage } from "../core/server-error.js";
import { EXIT, EXIT_OF_CODE } from "./exit-codes.js";
import { escapeLine, escapeText } from "./render/escape.js";
import { createPaint, type Paint } from "./render/paint.js";

/** Where a command's answer goes: text for people, or JSON for programs. */
export class Output {
  readonly paint: Paint;

  constructor(
    /** Whether `--json` was given. */
    readonly json: boolean,
    colour: boolean,
  ) {
    this.paint = createPaint(colour && !json);
  }

  /** Writes a line; waits while the reader is slower. */
  async line(text = ""): Promise<void> {
    await write(`${text}\n`);
  }

  /** Writes one JSON value as one line. */
  async value(value: unknown): Promise<void> {
    await write(`${JSON.stringify(value)}\n`);
  }

  /** Says something to a person at a terminal; programs are not told. */
  note(text: string): void {
    if (!this.json && process.stdout.isTTY === true) process.stderr.write(`${text}\n`);
  }

  /** Writes text that is complete as it is. */
  async raw(text: string): Promise<void> {
    await write(text);
  }
}

async function write(text: string): Promise<void> {
  if (!process.stdout.write(text) && process.stdout.writableNeedDrain) {
    await once(process.stdout, "drain");
  }
}

/** Ends quietly when the reader of standard output goes away, as in `agstate log | head`. */
export function dieQuietlyOnClosedPipe(): void {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(EXIT.ok);
    throw error;
  });
  process.stderr.on("error", () => process.exit(EXIT.ok));
}

/** Tells of an error on standard error, and gives the exit code that it has. */
export function reportError(error: unknown, json: boolean): number {
  const known = isAgstateError(error)
    ? error
    : new AgstateError(
        "INTERNAL",
        ownMessage(error),
        {},
        {
          cause: error,
        },
      );
  if (json) {
    const { code, message, details } = known;
    process.stderr.write(`${JSON.stringify({ error: { code, message, details } })}\n`);
  } else {
    process.stderr.write(`agstate: ${escapeText(known.message)} (${known.code})\n`);
    if (known.code === "INTERNAL" && error instanceof Error) {
      process.stderr.write(`${escapeText(framesOf(error))}\n`);
    }
  }
  return EXIT_OF_CODE[known.code];
}

/** Tells of what goes on without something that was asked for, or by something else. */
export function reportWarning(
  message: string,
  json: boolean,
  details: Readonly<Record<string, unknown>> = {},
): void {
  process.stderr.write(
    json
      ? `${JSON.stringify({ warning: { message, ...details } })}\n`
      : `agstate: ${escapeLine(message)}\n`,
  );
}

/** Tells of a wrong command line. */
export function reportUsage(message: string, json: boolean): void {
  const text = message.trim().replace(/^error: /, "");
  process.stderr.write(
    json
      ? `${JSON.stringify({ error: { code: "USAGE", message: text, details: {} } })}\n`
      : `agstate: ${escapeLine(text.split("\n")[0] as string)}${hint(text)}\n`,
  );
}

function hint(text: string): string {
  const rest = text.split("\n").slice(1).join(" ").trim();
  return rest === "" ? " (see agstate --help)" : ` ${escapeLine(rest)}`;
}

/**
 * The message of an error that nobody expected, where it names code only. Those of the engine about types and names do; what
 * is said of a text that could not be read, or by Node of an argument, quotes what was given.
 */
function ownMessage(error: unknown): string {
  if (!(error instanceof Error)) return "something that is no Error was thrown";
  const { name } = error;
  const message = toldMessage(error);
  const { code } = error as { code?: unknown };
  const isSystem = typeof (error as NodeJS.ErrnoException).syscall === "string";
  const quotes = error instanceof SyntaxError || / Received /.test(message);
  if (isSystem || !quotes) return message;
  return `${name}${typeof code === "string" ? ` (${code})` : ""}, whose message quotes what it was given and is not shown`;
}

/** Where an error came from, without its message, which stands before that. */
function framesOf(error: Error): string {
  const { name, message, stack = "" } = error;
  const at = stack.indexOf(message);
  const frames = at < 0 ? "" : stack.slice(at + message.length);
  return `${name}${frames}`;
}
