import { type Command, Option } from "commander";
import { command, type MakeAction } from "./command.js";

/** Adds the commands by which work changes hands. */
export function addHandoffCommands(program: Command, action: MakeAction): void {
  command(program, "handoff [branch]", "hand work off: say where it stands, and tag it")
    .option("--goal <text>", "what the work is for")
    .option("--done <text...>", "what is done")
    .option("--open <text...>", "what is not")
    .option("--decision <text...>", "what was decided")
    .option("--next <text>", "what is to be done next")
    .option("--note <text>", "further words")
    .option("--summary <file>", 'all of these as JSON, or "-" for standard input')
    .option("--resource <name...>", "what the work relies on besides what its steps recorded")
    .option("--tolerance <rule>", "of resources: exact (default), ignore, or max-age=1h")
    .option("--forget <name...>", "resources that nobody relies on any more")
    .option("--fingerprints <file>", "tools, prompts, model and code of the work, as JSON")
    .option("--tag <name>", "the tag (default: handoff-AGENT-BRANCH-N)")
    .option("--author <id>", "who hands off (default: the branch's agent)")
    .addOption(checkersOption())
    .addHelpText("after", RESOURCE_HELP)
    .action(action(() => import("./commands/handoff.js")));

  command(program, "resume [branch]", "show where a branch goes on; check it; take it up")
    .option("--check", "check what the work relies on; change nothing (exit code 1: not fresh)")
    .addOption(
      new Option("--take-up", "check, and take the branch up; else ask for a review").conflicts([
        "check",
        "list",
      ]),
    )
    .option("--from <tag>", "with --check or --take-up: an earlier hand-off of the branch")
    .option("--list", "list the hand-offs of the branch, and what each would do again")
    .option("--fingerprints <file>", "what work would go on with, as JSON, to be compared")
    .option("--author <id>", "who takes it up (default: the branch's agent)")
    .option("--expires <time>", "with --take-up: how long a review may wait, such as 12h")
    .option("-y, --yes", "with --from: also if steps with side effects are left behind")
    .addOption(checkersOption())
    .action(action(() => import("./commands/resume.js")));
}

/** What tells how resources are asked for. */
function checkersOption(): Option {
  return new Option(
    "--checkers <file>",
    "how resources are checked: roots, credentials, hosts, as JSON",
  ).env("AGSTATE_CHECKERS");
}

const RESOURCE_HELP = `
A resource is a URL, or TYPE:ID, such as file:docs/rules.md, confluence:123456,
git:REPOSITORY#refs/heads/main, jira:ABC-12 or github-pr:OWNER/REPOSITORY#7.`;
