import type { Command } from "commander";
import { command, type MakeAction } from "./command.js";

/** Adds the commands by which commits are kept whatever becomes of branches. */
export function addHoldCommands(program: Command, action: MakeAction): void {
  const hold = command(program, "hold", "keep commits, whatever becomes of branches");
  hold.addHelpText("after", HOLD_HELP);
  hold
    .command("list", { isDefault: true })
    .description("list what is held, by whom and why (the default)")
    .action(action(() => import("./commands/hold-list.js")));
  command(hold, "add <revision>", "hold a commit and all that it reaches")
    .requiredOption("--reason <text>", "why, in one line")
    .option("--name <name>", "what to call the hold (default: hold- and random digits)")
    .option("--actor <id>", "who holds it (default: the user of this computer)")
    .action(action(() => import("./commands/hold-add.js")));
  command(hold, "release <name>", "release a hold; its log stays")
    .requiredOption("--reason <text>", "why, in one line")
    .option("--actor <id>", "who releases it (default: the user of this computer)")
    .action(action(() => import("./commands/hold-release.js")));
}

const HOLD_HELP = `
A commit may be held several times; it stays until all its holds are released.
agstate reflog refs/holds/NAME shows who placed and released one, and why.`;
