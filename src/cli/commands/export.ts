import { resolve } from "node:path";
import { exportWorkflow } from "../../git/export-workflow.js";
import { recordExport } from "../../store/erase/exports.js";
import { reportWarning } from "../output.js";
import { escapeLine } from "../render/escape.js";
import { plural } from "../render/sizes.js";
import { type Session, userName } from "../session.js";

/** `agstate export --git DIR [--redacted]`. */
export async function run(
  session: Session,
  _args: readonly string[],
  options: { git: string; redacted?: boolean },
): Promise<undefined> {
  const { out } = session;
  const workflow = await session.workflow();
  const directory = resolve(options.git);
  const { redacted = false } = options;
  const result = await exportWorkflow(workflow, directory, { redacted });
  const tips = (await workflow.refs()).map(({ id }) => id);
  await recordExport(workflow.internals, directory, exporter(), tips);
  if ((await workflow.readFrom()).stale) {
    const message =
      "a replica takes no writes, so that this export is not on record: whoever erases has to be told of it";
    reportWarning(message, out.json);
  }
  if (out.json) return void (await out.value({ directory, ...result }));
  await out.line(
    `Wrote ${plural(result.objects, "object")} and ${plural(result.refs, "ref")} to ${escapeLine(directory)}.`,
  );
  if (result.withheld > 0) {
    const objects = plural(result.withheld, "object");
    await out.line(
      redacted
        ? `Notes stand for ${objects}: erased, elsewhere or encrypted.`
        : `It is a partial clone, without ${objects} that ${result.withheld === 1 ? "is" : "are"} erased.`,
    );
    await out.line(
      redacted
        ? "What leads to them has new ids."
        : "With --redacted it is complete, under new ids.",
    );
  }
  if (result.boundaries > 0) {
    await out.line(
      `It is shallow: history was thinned below ${plural(result.boundaries, "commit")}.`,
    );
  }
  await out.line(`Look at it with git -C ${escapeLine(options.git)} log --graph --all`);
}

/** Who exports: the user of this computer, if it says who that is. */
function exporter(): string {
  try {
    return userName();
  } catch {
    return "agstate";
  }
}
