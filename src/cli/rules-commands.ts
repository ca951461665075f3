import type { Command } from "commander";
import { command, type MakeAction } from "./command.js";

/** Adds the commands about files of rules for tools; they need no store. */
export function addRulesCommands(program: Command, action: MakeAction): void {
  const rules = command(program, "rules", "check and explain a file of rules for tools");
  rules.addHelpText("after", RULES_HELP);
  command(rules, "check <file>", 'check a JSON file of rules, or standard input ("-")').action(
    action(() => import("./commands/rules-check.js")),
  );
  command(rules, "explain <file> <tool...>", "show which rule counts for a tool, and what it says")
    .addHelpText("after", RULES_HELP)
    .action(action(() => import("./commands/rules-explain.js")));
}

const RULES_HELP = `
A file of rules is JSON, such as
  {"rules":[{"tool":"search*","decision":"allow","action":"read"},
            {"tool":"book*","decision":"approve","paths":["/budget"]}]}
The first rule that matches a tool's name counts; a tool that none matches has
the decision in "default", which is approve unless it is given. The agent's
program reads it: openStore(url, { governance: await readGovernanceFile(file) })`;
