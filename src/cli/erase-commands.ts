import { type Command, Option } from "commander";
import { command, type MakeAction } from "./command.js";

/** Adds the command by which something is taken out of all of history. */
export function addEraseCommand(program: Command, action: MakeAction): void {
  command(program, "erase", "take something out of all of a workflow's history")
    .addHelpText("after", HELP)
    .addOption(
      new Option("--path <path...>", "what stands there, such as /state/user/email").conflicts([
        "subject",
        "all",
        "again",
      ]),
    )
    .addOption(
      new Option("--subject <tag>", "what belongs to the subject").conflicts(["all", "again"]),
    )
    .addOption(new Option("--all", "everything; the workflow is completed").conflicts("again"))
    .option("--reason <text>", "why, in one line that says nothing of what is erased")
    .option("--by <id>", "who erases (default: the user of this computer)")
    .option("--dry-run", "show what would be erased; change nothing")
    .option("--keep-keys", "leave keys that hold it, and say where they are")
    .option("--receipt <file>", "write outside the store what is needed to do it again")
    .option("--again", "do again what the receipt says, as after a backup is restored")
    .option("--compact", "also give back the space, so that the store's files are free of it")
    .option("-y, --yes", "erase everything without asking")
    .action(action(() => import("./commands/erase.js")));
}

const HELP = `
Branches get new heads without it; older versions keep ids and links, and tell
who erased it, when and why. What holds keep is left, and told: run it again
when they are released, and with --again after a backup is restored.`;
