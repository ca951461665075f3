import { AgstateError } from "../../core/errors.js";
import type { BranchMigration, StateMigrationReport } from "../../store/schema/types.js";
import type { Workflow } from "../../store/workflow.js";
import { EXIT } from "../exit-codes.js";
import { migrationLines } from "../render/migration.js";
import { plural } from "../render/sizes.js";
import type { Session } from "../session.js";

interface Options {
  readonly migrations?: string;
  readonly dryRun?: boolean;
  readonly branch?: string[];
  readonly all?: boolean;
  readonly author?: string;
}

/** `agstate migrate-state`: brings the states of branches to the version that a module of migrations exports. */
export async function run(
  session: Session,
  _args: readonly string[],
  options: Options,
): Promise<undefined | number> {
  const { out } = session;
  const { migrations, dryRun = false, branch: branches, author } = options;
  if (migrations === undefined) {
    throw new AgstateError(
      "INVALID_ARGUMENT",
      "no migrations are named; name the module that exports them with --migrations FILE, or in AGSTATE_MIGRATIONS",
    );
  }
  const all: BranchMigration[] = [];
  for await (const workflow of workflowsOf(session, options)) {
    const report = await workflow.migrateState({
      dryRun,
      ...(branches && { branches }),
      ...(author === undefined ? {} : { author }),
    });
    all.push(...report.branches);
    if (out.json) await tellJson(session, report);
    else for (const line of migrationLines(out.paint, report)) await out.line(line);
  }
  if (!out.json) await out.line(summary(all, dryRun));
  if (dryRun && !out.json && all.some(({ status }) => status === "pending")) {
    await out.line(out.paint.dim("Nothing was changed: leave out --dry-run to do so."));
  }
  return all.some(({ status }) => status === "failed") ? EXIT.negative : undefined;
}

/** The named workflow or the only one; or all that have a schema: for a dry run, and where that is asked for. */
async function* workflowsOf(
  session: Session,
  { dryRun, all, branch }: Options,
): AsyncGenerator<Workflow, void, undefined> {
  const several = (dryRun === true && branch === undefined) || all === true;
  if (!several || session.namedWorkflow() !== undefined) return yield await session.workflow();
  for await (const workflow of session.workflows()) {
    const isOpen = workflow.info.completedAt === null;
    if (workflow.internals.schema !== null && (dryRun === true || isOpen)) yield workflow;
  }
}

async function tellJson({ out }: Session, report: StateMigrationReport): Promise<void> {
  const { workflow, dryRun } = report;
  for (const { error, ...branch } of report.branches) {
    const { code, message, details } = error ?? {};
    const told = error === null ? null : { code, message, details };
    await out.value({ workflow, dryRun, ...branch, error: told });
  }
}

function summary(all: readonly BranchMigration[], dryRun: boolean): string {
  const count = (wanted: BranchMigration["status"]) =>
    all.filter(({ status }) => status === wanted).length;
  const done = dryRun ? count("pending") : count("migrated");
  const failed = count("failed");
  const verb = dryRun ? "to migrate" : "migrated";
  const rest = count("current");
  return [
    `${plural(done, "branch", "branches")} ${verb}`,
    ...(failed > 0 ? [`${failed} failed`] : []),
    ...(rest > 0 ? [`${rest} up to date`] : []),
  ].join(", ");
}
