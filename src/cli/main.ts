#!/usr/bin/env node
import { type Command, CommanderError } from "commander";
import { EXIT } from "./exit-codes.js";
import { dieQuietlyOnClosedPipe, reportError, reportUsage } from "./output.js";
import { createProgram } from "./program.js";
import { runTraced } from "./telemetry/run.js";
import { wantedOf } from "./telemetry/wanted.js";

/** Runs the command line, and gives what it failed with. */
async function run(program: Command, finish: () => Promise<void>): Promise<unknown> {
  const wantsJson = process.argv.includes("--json");
  try {
    if (process.argv.length <= 2) {
      program.outputHelp();
      process.exitCode = EXIT.usage;
    } else {
      await program.parseAsync();
    }
    return undefined;
  } catch (error) {
    if (error instanceof CommanderError) {
      const help = error.exitCode === 0 || error.code === "commander.help";
      if (!help) reportUsage(error.message, wantsJson);
      process.exitCode = error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    } else {
      process.exitCode = reportError(error, wantsJson);
    }
    return error;
  } finally {
    await finish();
  }
}

dieQuietlyOnClosedPipe();
const { program, finish } = createProgram();
const wanted = wantedOf(process.env);
if (wanted === null) await run(program, finish);
else await runTraced(wanted, program, () => run(program, finish));
