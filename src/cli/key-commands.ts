import type { Command } from "commander";
import { command, type MakeAction } from "./command.js";

/** Adds the commands that make keys, and wrap or destroy those of workflows. */
export function addKeyCommands(program: Command, action: MakeAction): void {
  const keys = command(program, "keys", "keys that encrypt workflows: make, show, rotate, destroy");
  keys.addHelpText("after", KEYS_HELP);
  keys
    .command("show", { isDefault: true })
    .description("show which key encrypts the workflow (the default)")
    .action(action(() => import("./commands/keys-show.js")));
  command(keys, "new <file>", "make a key file that you alone can read")
    .option("--renew", "put a new version into a file that is there")
    .action(action(() => import("./commands/keys-new.js")));
  command(keys, "rotate", "wrap the workflow's key anew; no object changes")
    .option("--to <name>", "by this key (default: the present version of the same)")
    .option("--actor <id>", "who does it (default: the user of this computer)")
    .action(action(() => import("./commands/keys-rotate.js")));
  command(keys, "destroy", "destroy the workflow's key, or a subject's: it erases for ever")
    .requiredOption("--reason <text>", "why, in one line")
    .option("--subject <name>", "only the key of this subject")
    .option("--actor <id>", "who does it (default: the user of this computer)")
    .option("-y, --yes", "yes, destroy it")
    .action(action(() => import("./commands/keys-destroy.js")));
}

const KEYS_HELP = `
Keys are named by --keys or AGSTATE_KEYS: file:PATH is a key file or a directory
of NAME.key files, env: reads variables AGSTATE_KEY_<NAME>. Sensitive and
regulated workflows that are created with keys are encrypted, and need them.`;
