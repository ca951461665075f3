import { AgstateError, type ErrorCode, isAgstateError } from "../core/errors.js";
import { formatPointer } from "../core/json-pointer.js";
import { quoteForMessage } from "../core/names.js";

/** A place in a transcript file, so that errors say where something is wrong. */
export class Place {
  constructor(
    readonly file: string,
    /** In a file of JSON lines, the line, from 1. */
    readonly line?: number,
    /** The JSON path within the file or the line. */
    private readonly path: readonly (string | number)[] = [],
  ) {}

  /** A place further in. */
  at(...path: (string | number)[]): Place {
    return new Place(this.file, this.line, [...this.path, ...path]);
  }

  get pointer(): string {
    return formatPointer(this.path);
  }

  /** The error that says what is wrong here; `problem` goes on after the place's name. */
  error(
    problem: string,
    options: { code?: ErrorCode; cause?: unknown; details?: Record<string, unknown> } = {},
  ): AgstateError {
    const line = this.line === undefined ? "" : `, line ${this.line}`;
    const path = this.pointer === "" ? "" : `, at ${quoteForMessage(this.pointer)}`;
    return new AgstateError(
      options.code ?? "INVALID_TRANSCRIPT",
      `transcript ${quoteForMessage(this.file)}${line}${path}: ${problem}`,
      {
        ...options.details,
        file: this.file,
        ...(this.line === undefined ? {} : { line: this.line }),
        path: this.pointer || (options.details?.path ?? ""),
      },
      { cause: options.cause },
    );
  }

  /** Runs a check of what stands here; its complaints become the transcript's, limits staying limits. */
  checking<T>(check: () => T): T {
    try {
      return check();
    } catch (error) {
      if (!isAgstateError(error)) throw error;
      const code = error.code === "LIMIT_EXCEEDED" ? error.code : "INVALID_TRANSCRIPT";
      throw this.error(error.message, { code, cause: error, details: { ...error.details } });
    }
  }
}

/** Names the kind of a JSON value in a message. */
export function kindOf(value: unknown): string {
  if (value === undefined) return "missing";
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "an object";
  return typeof value === "string" ? "a text" : `a ${typeof value}`;
}
