import { type Command, Option } from "commander";
import { command, count, type MakeAction } from "./command.js";
import { migrationsOption } from "./schema-file.js";

/** Adds the commands that merge, and that take changes over from one branch to another. */
export function addMergeCommands(program: Command, action: MakeAction): void {
  const instead = ["preview", "policy", "into", "ffOnly", "allowUnrelated", "allowOpenIntents"];
  command(program, "merge [branch...]", "merge branches into canonical, or into another branch")
    .option("--into <branch>", "the branch that is merged into (default: canonical)")
    .option("--preview", "show what would come out; write nothing")
    .option(
      "--policy <path=strategy>",
      "for this merge, such as /messages=append; repeatable",
      collect,
    )
    .option("-m, --message <text>", "what the merge commit says")
    .option("--author <id>", "who merges (default: supervisor)")
    .option("--no-ff", "make a merge commit even where moving the branch would do")
    .option("--ff-only", "refuse to make a merge commit")
    .option("--allow-unrelated", "merge histories without a common commit")
    .option("--allow-open-intents", "merge branches with steps that are not sealed")
    .addOption(migrationsOption())
    .addOption(
      new Option(
        "--continue [name]",
        "finish a stored merge whose conflicts are resolved",
      ).conflicts([...instead, "abort", "list"]),
    )
    .addOption(
      new Option("--abort [name]", "give a stored merge up").conflicts([
        ...instead,
        "message",
        "author",
        "list",
      ]),
    )
    .addOption(
      new Option("--list", "list stored merges").conflicts([...instead, "message", "author"]),
    )
    .addHelpText("after", MERGE_HELP)
    .action(action(() => import("./commands/merge.js")));

  command(program, "conflicts [name]", "show the open conflicts of a stored merge")
    .addOption(migrationsOption())
    .action(action(() => import("./commands/conflicts.js")));

  command(program, "resolve [path]", "decide what a conflicting path is to hold")
    .option("--ours", "the value of the branch that is merged into")
    .option("--theirs [branch]", "the value of the merged branch")
    .option("--value <json>", "this value")
    .option("--file <file>", 'the value in a JSON file or "-"')
    .option("--delete", "no value")
    .option("--merge <name>", "the stored merge (default: the only one)")
    .addOption(
      new Option("--part <part>", "of the state, or of the merge policies").choices([
        "state",
        "policy",
      ]),
    )
    .option("--author <id>", "who decides (default: who began the merge)")
    .addOption(migrationsOption())
    .action(action(() => import("./commands/resolve.js")));

  const policy = command(program, "policy", "list, set and unset the merge policies of a branch");
  policy.addHelpText("after", POLICY_HELP);
  policy
    .command("list", { isDefault: true })
    .description("list them (the default)")
    .option("--branch <name>", "the branch (default: canonical)")
    .action(action(() => import("./commands/policy-list.js")));
  const change = (usage: string, description: string): Command =>
    command(policy, usage, description)
      .option("--branch <name>", "the branch (default: canonical)")
      .option("-m, --message <text>", "what the commit says")
      .option("--author <id>", "who does it");
  change("set <path> <strategy>", "set the policy of a path")
    .addHelpText("after", POLICY_HELP)
    .action(action(() => import("./commands/policy-set.js")));
  change("unset <path>", "remove the policy of a path").action(
    action(() => import("./commands/policy-unset.js")),
  );

  const picking = (parent: Command): Command =>
    parent
      .option("--mainline <n>", "of a merge: the parent that its change is counted from", count)
      .option("--policy <path=strategy>", "for this call, such as /seats=sum; repeatable", collect)
      .option("-m, --message <text>", "what the commit says")
      .option("--author <id>", "who does it (default: supervisor)")
      .addOption(migrationsOption());
  picking(
    command(program, "cherry-pick <revision>", "apply the change that a commit made").option(
      "--onto <branch>",
      "the branch that gets it (default: canonical)",
    ),
  ).action(action(() => import("./commands/cherry-pick.js")));
  picking(
    command(program, "revert <revision>", "undo the change that a commit made").option(
      "--on <branch>",
      "the branch that it is undone on (default: canonical)",
    ),
  ).action(action(() => import("./commands/revert.js")));

  command(program, "merge-base <a> <other...>", "print the best common ancestor")
    .option("--all", "print all best common ancestors")
    .option("--is-ancestor", "exit with 0 if the first is an ancestor of the other, else 1")
    .action(action(() => import("./commands/merge-base.js")));
}

/** One value an option, so that the branches that follow are not taken for values; the option may be repeated. */
function collect(value: string, previous: readonly string[] = []): string[] {
  return [...previous, value];
}

const MERGE_HELP = `
When branches conflict, the merge is stored, nothing moves, and the exit code
is 4. Go on with agstate conflicts, agstate resolve PATH ..., and then
agstate merge --continue.
`;

const POLICY_HELP = `
A path is a JSON Pointer, in which * stands for any key or list element.
Strategies:
  ours, theirs   the whole value of one side
  append         lists and texts: what both sides added at the end
  union          lists as sets: what either added, less what either removed
  by-id:KEY      lists of objects, merged element by element, found by KEY
  sum, max, min  of numbers (max and min also of strings)
  manual         always a conflict
  custom:NAME    a function that the caller of the library gives
`;
