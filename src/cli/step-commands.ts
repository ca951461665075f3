import type { Command } from "commander";
import { command, count, type MakeAction } from "./command.js";

/** Adds the commands about what agents did, and what is open of it. */
export function addStepCommands(program: Command, action: MakeAction): void {
  command(program, "steps [branch]", "list the steps of a branch, newest first")
    .option("--name <name>", "only those of this name")
    .option("--action <action>", "only read, inference, write or execute")
    .option("--status <status>", "only started (in doubt), completed or failed")
    .option("--since <time>", "only those begun at this time or later")
    .option("-n, --max-count <n>", "at most so many", count)
    .action(action(() => import("./commands/steps.js")));

  const step = command(program, "step", "show a step, or say what became of one");
  command(step, "show <number> [branch]", "show what a step was given, and what came out").action(
    action(() => import("./commands/step-show.js")),
  );
  command(step, "seal <number> [branch]", "say what became of a step that is in doubt")
    .option("--output <json>", "it was done, and this is what came out")
    .option("--error <text>", "it was not done")
    .option("--author <id>", "who says so (default: the branch's agent)")
    .action(action(() => import("./commands/step-seal.js")));
}
