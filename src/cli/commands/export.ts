import { resolve } from "node:path";
import { exportWorkflow } from "../../git/export-workflow.js";
import { escapeLine } from "../render/escape.js";
import { plural } from "../render/sizes.js";
import type { Session } from "../session.js";

/** `agstate export --git DIR`. */
export async function run(
  session: Session,
  _args: readonly string[],
  options: { git: string },
): Promise<undefined> {
  const { out } = session;
  const workflow = await session.workflow();
  const directory = resolve(options.git);
  const result = await exportWorkflow(workflow, directory);
  if (out.json) return void (await out.value({ directory, ...result }));
  await out.line(
    `Wrote ${plural(result.objects, "object")} and ${plural(result.refs, "ref")} to ${escapeLine(directory)}.`,
  );
  await out.line(`Look at it with git -C ${escapeLine(options.git)} log --graph --all`);
}
