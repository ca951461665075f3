import { type Command, Option } from "commander";
import { command, count, type MakeAction } from "./command.js";

/** Adds the commands by which an auditor reads what happened, and checks it. */
export function addAuditCommands(program: Command, action: MakeAction): void {
  const audit = command(program, "audit", "tell all that happened to a workflow, and check it");
  audit.addHelpText("after", AUDIT_HELP);
  audit
    .command("list [refs]", { isDefault: true })
    .description("tell what happened, of all refs or those that match (the default)")
    .option("-f, --follow", "go on as it happens, until Ctrl-C")
    .option("-n, --max-count <n>", "end after so many events", count)
    .addOption(new Option("--since <cursor>", "only what came after a cursor that --json printed"))
    .addOption(
      new Option(
        "--to <file>",
        "append to a file, a JSON value a line, going on where it ends",
      ).conflicts("since"),
    )
    .action(action(() => import("./commands/audit-list.js")));
  command(audit, "export", "send what happened to an OpenTelemetry collector, over OTLP")
    .requiredOption("--cursor <file>", "keeps how far it was delivered, and is where it goes on")
    .option("--otlp <url>", "the collector (default: OTEL_EXPORTER_OTLP_ENDPOINT, or localhost)")
    .option("-f, --follow", "go on as it happens, until Ctrl-C")
    .action(action(() => import("./commands/audit-export.js")));
  command(audit, "verify", "check that logs and commits are those that were written")
    .option("--checkpoint <file>", "against what was signed before")
    .option("--public-key <file>", "the signer's public key, in PEM")
    .action(action(() => import("./commands/audit-verify.js")));
  command(audit, "checkpoint", "sign where all logs stand, to be kept elsewhere")
    .requiredOption("--key <file>", "the private key (Ed25519, in PEM)")
    .option("--out <file>", "a file that is not there yet (default: standard output)")
    .action(action(() => import("./commands/audit-checkpoint.js")));
}

const AUDIT_HELP = `
Options of list, such as --follow, --since and --to: agstate audit list --help.
Keys are made by openssl genpkey -algorithm ed25519 -out private.pem
and openssl pkey -in private.pem -pubout -out public.pem`;
