import type { Command } from "commander";
import { isAgstateError } from "../../core/errors.js";
import { EXIT } from "../exit-codes.js";
import type { Wanted } from "./wanted.js";

/**
 * Runs the command line within a span, and sends what was told of it. Neither what it prints nor its exit code depends on whether
 * that is taken.
 *
 * @param run gives what the command failed with, if anything
 */
export async function runTraced(
  wanted: Wanted,
  program: Command,
  run: () => Promise<unknown>,
): Promise<void> {
  const { TracedCommand } = await import("./command.js");
  const traced = await TracedCommand.begin(wanted, process.env);
  if (traced === undefined) return void (await run());
  program.hook("preAction", (_, command) => traced.name(wordsOf(command)));
  let settled = true;
  try {
    const error = await traced.do(run);
    const exitCode = Number(process.exitCode ?? EXIT.ok);
    settled = await traced.end({ exitCode, errorType: errorType(exitCode, error) });
  } catch (error) {
    settled = await traced.end({ exitCode: 1, errorType: (error as Error)?.name });
    throw error;
  } finally {
    // After what was written is out, and after an error that is thrown here is told.
    if (!settled) setImmediate(() => process.stdout.write("", () => process.exit()));
  }
}

/** The words that name a command, such as `agstate audit list`. */
function wordsOf(command: Command): string[] {
  return [...(command.parent === null ? [] : wordsOf(command.parent)), command.name()];
}

/** The code of an error, or what the exit code says; no message, which may hold what was given. */
function errorType(exitCode: number, error: unknown): string | undefined {
  if (exitCode === EXIT.ok) return undefined;
  if (isAgstateError(error)) return error.code;
  if (exitCode === EXIT.internal) return "INTERNAL";
  return Object.entries(EXIT).find(([, code]) => code === exitCode)?.[0] ?? String(exitCode);
}
