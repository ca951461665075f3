import type { Conflict, StoredMergeInfo } from "../../store/merge/types.js";
import { byPath, conflictLines, shownPath } from "../render/conflict.js";
import { cutTo } from "../render/cut.js";
import { escapeLine } from "../render/escape.js";
import { paintBranch } from "../render/merge.js";
import { plural } from "../render/sizes.js";
import type { Session } from "../session.js";
import { tellNextSteps } from "./stored-merge.js";

/** `agstate conflicts [NAME]`: what is open in a stored merge, against its target as it is now. */
export async function run(session: Session, args: readonly string[]): Promise<undefined> {
  const { out } = session;
  const workflow = await session.workflow();
  const stored = await workflow.storedMerge(args[0]);
  const { info } = stored;
  const conflicts = await stored.conflicts();
  const openAt = new Set(conflicts.map(keyOf));
  const resolved = info.resolved.map((one) => ({ ...one, reopened: openAt.has(keyOf(one)) }));
  if (out.json) return void (await out.value({ ...info, resolved, conflicts }));
  const { paint } = out;
  const sources = info.sources.map(({ branch }) => cutTo(escapeLine(branch), 60)).join(", ");
  await out.line(
    `${paint.bold(escapeLine(info.name))}: ${info.operation} ${cutTo(sources, 240)} into ${paintBranch(paint, info.into)}`,
  );
  if (resolved.length > 0) await out.line();
  for (const one of resolved) await out.line(resolvedLine(session, one));
  for (const group of byPath(conflicts)) {
    await out.line();
    for (const line of conflictLines(paint, group)) await out.line(line);
  }
  await out.line();
  const open = byPath(conflicts).length;
  if (open === 0) {
    return void (await out.line(
      `Nothing is open; finish with agstate merge --continue ${escapeLine(info.name)}`,
    ));
  }
  await out.line(`${plural(open, "path is", "paths are")} open. To go on:`);
  await tellNextSteps(session, workflow, info.name, conflicts);
}

function keyOf({ part, path }: Pick<Conflict, "part" | "path">): string {
  return `${part} ${path}`;
}

function resolvedLine(
  session: Session,
  one: StoredMergeInfo["resolved"][number] & { readonly reopened: boolean },
): string {
  const { paint } = session.out;
  const by = cutTo(escapeLine(one.by), 40);
  const state = one.reopened
    ? paint.bad("open again (the values changed since)")
    : paint.good("resolved");
  return `${state} ${paint.path(shownPath(one))}: ${one.how}, by ${by}`;
}
