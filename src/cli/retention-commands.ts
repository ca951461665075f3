import type { Command } from "commander";
import { command, type MakeAction } from "./command.js";

/** Adds the commands by which what is over is taken away. */
export function addRetentionCommands(program: Command, action: MakeAction): void {
  const retention = command(program, "retention", "take away what is older than the policy says");
  retention.addHelpText("after", RETENTION_HELP);
  for (const { name, says } of [
    { name: "plan", says: "show what would go, and what keeps the rest; change nothing" },
    { name: "apply", says: "take it away, and put that on record" },
  ]) {
    const one = command(retention, name, says)
      .option("--payload <period>", "how long states and records are kept, such as P90D")
      .option("--history <period>", "how long commits are kept, such as P1Y")
      .option("--grace <time>", "as of gc: how long what a ref left is kept (default: 14d)")
      .option("--all", "every workflow that has a policy, where none is named");
    if (name === "apply") {
      one.option("--compact", "give back the space of the store as well, at the end");
      one.option("--actor <id>", "who does it (default: the user of this computer)");
    }
    one.action(
      action(async () => {
        const { runAs } = await import("./commands/retention.js");
        return { run: runAs(name === "plan") };
      }),
    );
  }
}

const RETENTION_HELP = `
A period given here goes before what the workflow declares; without --payload and
--history the declared policy counts. Refs' commits stay, and all that holds reach.`;
