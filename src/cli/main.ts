#!/usr/bin/env node
import { CommanderError } from "commander";
import { EXIT } from "./exit-codes.js";
import { dieQuietlyOnClosedPipe, reportError, reportUsage } from "./output.js";
import { createProgram } from "./program.js";

dieQuietlyOnClosedPipe();
const wantsJson = process.argv.includes("--json");
const { program, finish } = createProgram();
try {
  if (process.argv.length <= 2) {
    program.outputHelp();
    process.exitCode = EXIT.usage;
  } else {
    await program.parseAsync();
  }
} catch (error) {
  if (error instanceof CommanderError) {
    const help = error.exitCode === 0 || error.code === "commander.help";
    if (!help) reportUsage(error.message, wantsJson);
    process.exitCode = error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  } else {
    process.exitCode = reportError(error, wantsJson);
  }
} finally {
  await finish();
}
