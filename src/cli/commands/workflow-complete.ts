import { formatDate } from "../render/commit.js";
import { escapeLine } from "../render/escape.js";
import type { Session } from "../session.js";

/** `agstate workflow complete [ID]`: closes a workflow to further steps. */
export async function run(
  session: Session,
  args: readonly string[],
  options: { readonly author?: string; readonly reason?: string },
): Promise<undefined> {
  const { out } = session;
  const workflow = await session.workflow(args[0]);
  const before = workflow.info.completedAt;
  const info = await workflow.complete(options);
  if (out.json) return void (await out.value(info));
  const name = out.paint.bold(escapeLine(info.id));
  if (before !== null) return void (await out.line(`${name} was completed ${formatDate(before)}.`));
  await out.line(`Completed ${name}. Its branches take no more commits.`);
}
