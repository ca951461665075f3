import { Command, Option } from "commander";
import { VERSION } from "../core/version.js";
import { addAuditCommands } from "./audit-commands.js";
import { command, count, type MakeAction, type Run } from "./command.js";
import { addEraseCommand } from "./erase-commands.js";
import { addHandoffCommands } from "./handoff-commands.js";
import { addHoldCommands } from "./hold-commands.js";
import { addKeyCommands } from "./key-commands.js";
import { addMergeCommands } from "./merge-commands.js";
import { addRegionCommands } from "./region-commands.js";
import { addRetentionCommands } from "./retention-commands.js";
import { addReviewCommands } from "./review-commands.js";
import { addRulesCommands } from "./rules-commands.js";
import { migrationsOption } from "./schema-file.js";
import { type GlobalOptions, Session } from "./session.js";
import { addStepCommands } from "./step-commands.js";
import { traceUrlOption } from "./trace-link.js";

/** The command line, and what to call when it is over. */
export function createProgram(): { program: Command; finish: () => Promise<void> } {
  const sessions: Session[] = [];
  const program = new Command("agstate");
  program
    .description("Version control for the state of AI agents.")
    .version(VERSION, "--version", "show the version")
    .addOption(
      new Option("--store <url>", "the store: a directory, sqlite:DIRECTORY or postgres://...").env(
        "AGSTATE_STORE",
      ),
    )
    .addOption(
      new Option(
        "--regions <file>",
        "regions instead of a store: each workflow's is found by it",
      ).env("AGSTATE_REGIONS"),
    )
    .addOption(
      new Option("-w, --workflow <id>", "the workflow (default: the only one)").env(
        "AGSTATE_WORKFLOW",
      ),
    )
    .addOption(
      new Option("--keys <source>", "keys of encrypted workflows: file:PATH, or env:").env(
        "AGSTATE_KEYS",
      ),
    )
    .option("--json", "answer in JSON, one value a line")
    .option("--no-color", "no colours (they are only used on a terminal)")
    .helpCommand("help [command]", "show help for a command")
    .helpOption("-h, --help", "show help")
    .configureHelp({ showGlobalOptions: true, subcommandTerm: termOf })
    .showSuggestionAfterError()
    .configureOutput({ writeErr: () => undefined })
    .exitOverride();

  const action: MakeAction =
    <Options>(load: () => Promise<{ run: Run<Options> }>) =>
    async (...received: unknown[]): Promise<void> => {
      const command = received.at(-1) as Command;
      const session = new Session(command.optsWithGlobals<GlobalOptions>());
      sessions.push(session);
      const args = (received.slice(0, -2) as (string | string[] | undefined)[])
        .flat()
        .filter((arg) => arg !== undefined);
      const { run } = await load();
      const code = await run(session, args, received.at(-2) as Options);
      if (code !== undefined) process.exitCode = code;
    };

  program.commandsGroup(STORE);
  command(program, "init [store]", "make a store (default: .agstate here)")
    .option("--region <name>", "the region that the store stands in")
    .action(action(() => import("./commands/init.js")));

  const workflow = command(program, "workflow", "create, list, show and complete workflows");
  command(workflow, "create <id>", "create a workflow")
    .option("--state <file>", 'the first state of canonical, a JSON file or "-"')
    .option("--classification <class>", "public, internal, sensitive or regulated")
    .option("--region <name>", "the region that its data stays in")
    .option("--retention <policy>", "how long: P90D of payload, or payload=P90D;history=P1Y")
    .option("--isolate <path...>", "paths whose values are kept as objects of their own")
    .option(
      "--subjects <path...>",
      "paths of what belongs to one subject, such as /state/users/{subject}",
    )
    .option(
      "--place <part...>",
      "parts that belong to another region: /state/customer=us, or inference, tool, result=us",
    )
    .option("--author <id>", "who creates it")
    .action(action(() => import("./commands/workflow-create.js")));
  command(workflow, "redeclare", "change a workflow's classification or retention, on record")
    .argument("<workflow>", "its id")
    .option("--classification <name>", "public, internal, sensitive or regulated")
    .option("--retention <period>", "how long history is kept, such as P90D; none for no limit")
    .requiredOption("--reason <text>", "why; kept on refs/audit/workflow")
    .option("--by <id>", "who changes it")
    .option("--lower", "let the classification become less strict")
    .action(action(() => import("./commands/workflow-redeclare.js")));
  command(workflow, "list", "list the workflows of the store").action(
    action(() => import("./commands/workflow-list.js")),
  );
  command(workflow, "complete [id]", "close a workflow to further steps; it cannot be taken back")
    .option("--author <name>", "who completes it (default: agstate)")
    .option("--reason <text>", "why, in one line")
    .action(action(() => import("./commands/workflow-complete.js")));
  command(workflow, "show [id]", "show a workflow's declarations, refs and size").action(
    action(() => import("./commands/workflow-show.js")),
  );

  addRegionCommands(program, action);
  addKeyCommands(program, action);

  program.commandsGroup(BRANCHES);
  command(program, "status", "show the branches and how far each is from canonical").action(
    action(() => import("./commands/status.js")),
  );

  command(program, "branch [name] [start]", "list branches, or create one as AGENT/BRANCH")
    .option("-d, --delete", "delete the branch; its history stays in its reflog")
    .option("--merged [revision]", "list only branches reachable from it (default: canonical)")
    .option("--expected <revision>", "with -d: delete only if the branch is there")
    .option("-y, --yes", "with -d: also if steps with side effects are left behind")
    .action(action(() => import("./commands/branch.js")));

  command(program, "commit [file]", 'commit a state from a JSON file, or standard input ("-")')
    .option("-b, --branch <name>", "the branch (default: canonical)")
    .option("-m, --message <text>", "what the commit says")
    .option("--author <id>", "who writes (default: the branch's agent)")
    .option("--merge-parent <revision...>", "record further parents")
    .option("--expected <revision>", "commit only if the branch is there")
    .option("--allow-empty", "commit though nothing changed")
    .action(action(() => import("./commands/commit.js")));

  program.commandsGroup(HISTORY);
  command(program, "log [revision...]", "show commits, newest first (default: canonical)")
    .option("-n, --max-count <n>", "at most so many commits", count)
    .option("--all", "from all branches, tags and other refs")
    .option("--graph", "draw the graph of branches and merges")
    .option("--oneline", "one line a commit")
    .option("--first-parent", "follow first parents only")
    .addOption(traceUrlOption())
    .action(action(() => import("./commands/log.js")));

  command(program, "show [revision]", "show a commit: its step and what it changed")
    .addOption(traceUrlOption())
    .action(action(() => import("./commands/show.js")));

  command(program, "diff <older> [newer]", "show what differs between two states")
    .option("--path <pointer>", "only at and below this JSON Pointer")
    .option("--exit-code", "exit with 1 when there are differences")
    .action(action(() => import("./commands/diff.js")));

  command(
    program,
    "cat <revision> [pointer]",
    "print a state, or the value at a JSON Pointer in it",
  )
    .option("-r, --raw", "print a string as it is, without quotes")
    .action(action(() => import("./commands/cat.js")));

  command(program, "reflog [ref]", "show how a ref moved (default: canonical)")
    .option("-n, --max-count <n>", "at most so many entries", count)
    .action(action(() => import("./commands/reflog.js")));

  command(program, "watch [pattern]", "tell of moves of refs as they happen (default: all refs)")
    .option("--from-start", "begin with all that the logs hold")
    .option("-n, --max-count <n>", "end after so many moves", count)
    .action(action(() => import("./commands/watch.js")));

  command(
    program,
    "blame [revision] [pointer]",
    "show who last wrote each member or element of a value",
  ).action(action(() => import("./commands/blame.js")));

  program.commandsGroup(BRANCHES);
  command(program, "tag [name] [revision]", "list tags, or tag a commit")
    .option("-d, --delete", "delete the tag")
    .action(action(() => import("./commands/tag.js")));

  addHoldCommands(program, action);

  command(program, "reset <branch> <revision>", "point a branch to another commit")
    .option("--expected <revision>", "only if the branch is there")
    .option("--author <id>", "who does it")
    .option("-y, --yes", "also if steps with side effects are left behind")
    .action(action(() => import("./commands/reset.js")));

  program.commandsGroup("Merging:");
  addMergeCommands(program, action);

  program.commandsGroup("Steps:");
  addStepCommands(program, action);
  addHandoffCommands(program, action);
  addReviewCommands(program, action);
  addRulesCommands(program, action);

  program.commandsGroup(STORE);
  command(program, "migrate", "bring the schema of a store on a server up to date")
    .option("--status", "show the migrations that it had and lacks; change nothing")
    .option("--dry-run", "show what would be done; change nothing")
    .addOption(
      new Option(
        "--roles [names]",
        "also make roles of least privilege, named writer,reader,maintainer (default: agstate_writer,...)",
      ).conflicts(["status", "dryRun"]),
    )
    .addOption(
      new Option(
        "--distributed",
        "also distribute the tables by workflow over the workers of Citus",
      ).conflicts(["status", "dryRun"]),
    )
    .action(action(() => import("./commands/migrate.js")));

  command(program, "migrate-state", "bring the states of branches to the newest version of them")
    .addOption(migrationsOption())
    .option("--dry-run", "show what would change, in all workflows where none is named")
    .option("--branch <name...>", "these branches (default: canonical and all agents' branches)")
    .option("--all", "all workflows, where none is named; those that are complete stay")
    .option("--author <id>", "who migrates (default: agstate)")
    .action(action(() => import("./commands/migrate-state.js")));

  command(program, "doctor", "check what the store stands on, and say what to do").action(
    action(() => import("./commands/doctor.js")),
  );

  command(program, "pressure", "show how near memory and processors are to their limits, live")
    .option("--pid <id>", "of this process (default: of the command's own)")
    .option("--interval <time>", "how often to look, such as 500ms or 5s", "1s")
    .option("-n, --count <n>", "end after so many looks", count)
    .addOption(new Option("--once", "look once").conflicts("count"))
    .option("--usage <percent>", "where agstate would act, in per cent of a limit (default: 85)")
    .action(action(() => import("./commands/pressure.js")));

  command(program, "fsck", "check hashes, links, refs and logs of the store").action(
    action(() => import("./commands/fsck.js")),
  );

  addAuditCommands(program, action);

  command(program, "verify", "check exported spans against the commits that they tell of")
    .option("--trace <file...>", 'the spans, as OTLP JSON; "-" for standard input')
    .option("--tolerance <time>", "by how much clocks may differ, such as 500ms (default: 1s)")
    .action(action(() => import("./commands/verify.js")));

  command(program, "gc", "remove what no ref and no recent log entry reaches")
    .option("--dry-run", "show what would be removed; remove nothing")
    .option("--grace <time>", "keep what is younger, such as 12h or 30d (default: 14d)")
    .action(action(() => import("./commands/gc.js")));

  addEraseCommand(program, action);
  addRetentionCommands(program, action);

  command(program, "stats", "show how much is stored, and by which agents' branches").action(
    action(() => import("./commands/stats.js")),
  );

  command(program, "compact", "give back the space of what is gone, of all workflows").action(
    action(() => import("./commands/compact.js")),
  );

  command(
    program,
    "import <source>",
    "turn a transcript, or LangGraph's checkpoints, into workflows",
  )
    .addOption(
      new Option(
        "--format <format>",
        "the file's format (default: swe-agent for *.traj and *.traj.json, else messages)",
      ).choices(["messages", "swe-agent"]),
    )
    .option("--agents", "put each conversation of the file on a branch of its own")
    .addOption(
      new Option(
        "--from <checkpointer>",
        "copy all threads of a PostgresSaver (the source is its URL, ?schema=NAME for a schema) or a SqliteSaver (its file), and check them; again, it goes on",
      )
        .choices(["langgraph-postgres", "langgraph-sqlite"])
        .conflicts(["format", "agents"]),
    )
    .action(action(() => import("./commands/import.js")));

  command(program, "export", "write the workflow as a Git repository")
    .requiredOption("--git <directory>", "a new or empty directory, or an empty bare repository")
    .option(
      "--redacted",
      "complete, under new ids: notes stand for what is erased, elsewhere or encrypted",
    )
    .action(action(() => import("./commands/export.js")));

  return {
    program,
    finish: async () => {
      for (const session of sessions) await session.close();
    },
  };
}

const STORE = "Store and workflows:";
const BRANCHES = "Branches and commits:";
const HISTORY = "History:";

/** A command as help lists it: its name and arguments, so that there is room for the description. */
function termOf(listed: Command): string {
  const args = listed.registeredArguments.map((argument) => {
    const name = argument.variadic ? `${argument.name()}...` : argument.name();
    return argument.required ? `<${name}>` : `[${name}]`;
  });
  return [listed.name(), ...args].join(" ");
}
