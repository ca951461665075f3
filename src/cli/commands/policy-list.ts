import { columns } from "../render/columns.js";
import { cutTo } from "../render/cut.js";
import { escapeLine } from "../render/escape.js";
import { paintBranch } from "../render/merge.js";
import type { Session } from "../session.js";

const PATH_MAX_WIDTH = 200;

/** `agstate policy`: the merge policies that act when a branch is merged into. */
export async function run(
  session: Session,
  _args: readonly string[],
  options: { readonly branch?: string },
): Promise<undefined> {
  const { out } = session;
  const branch = await (await session.workflow()).branch(options.branch ?? "canonical");
  const policies = await branch.policies();
  if (out.json) return void (await out.value({ branch: branch.name, policies }));
  const rows = Object.entries(policies).map(([path, strategy]) => [
    out.paint.path(path === "" ? "(the whole state)" : cutTo(escapeLine(path), PATH_MAX_WIDTH)),
    escapeLine(strategy),
  ]);
  for (const line of columns(rows)) await out.line(line);
  if (rows.length > 0) return;
  const name = paintBranch(out.paint, branch.name);
  await out.line(`${name} has no merge policies: the default rules act.`);
  await out.line(out.paint.dim("Set one with, for example, agstate policy set /messages append"));
}
