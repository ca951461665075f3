import { isAgstateError } from "../../core/errors.js";
import { parsePointer } from "../../core/json-pointer.js";
import type { StoredMerge } from "../../store/merge/merging.js";
import type { Conflict, MergeResult } from "../../store/merge/types.js";
import type { Workflow } from "../../store/workflow.js";
import { columns } from "../render/columns.js";
import { ago } from "../render/commit.js";
import { byPath, conflictLines, shownPath } from "../render/conflict.js";
import { cutTo } from "../render/cut.js";
import { escapeLine } from "../render/escape.js";
import { paintBranch } from "../render/merge.js";
import { shellWord } from "../render/shell.js";
import { plural } from "../render/sizes.js";
import type { Session } from "../session.js";

/** How many conflicting paths a merge shows; `agstate conflicts` shows all. */
const PATHS_SHOWN = 10;

/** Shows conflicts as Git does; with a target, also that it has not moved. */
export async function tellConflicts(
  session: Session,
  conflicts: readonly Conflict[],
  target?: string,
): Promise<void> {
  const { out } = session;
  const groups = byPath(conflicts);
  for (const [i, group] of groups.slice(0, PATHS_SHOWN).entries()) {
    if (i > 0) await out.line();
    for (const line of conflictLines(out.paint, group)) await out.line(line);
  }
  const more = groups.length - PATHS_SHOWN;
  if (more > 0) await out.line(out.paint.dim(`... and conflicts at ${plural(more, "more path")}`));
  if (target === undefined) return;
  await out.line();
  const open = plural(groups.length, "path conflicts", "paths conflict");
  await out.line(`${open}; ${paintBranch(out.paint, target)} has not moved.`);
}

/** Says where a merge was stored, and how to go on with it. */
export async function tellStored(
  session: Session,
  workflow: Workflow,
  name: string,
  conflicts: readonly Conflict[],
  operation: string,
): Promise<void> {
  const { out } = session;
  await out.line(`The ${operation} is stored as ${out.paint.bold(name)}. To finish it:`);
  const named = (await workflow.storedMerges()).length > 1 ? ` ${name}` : "";
  await out.line(besideOrBelow(`  agstate conflicts${named}`, out.paint.dim("shows what is open")));
  await tellNextSteps(session, workflow, name, conflicts);
}

/** Says how to resolve the first conflict, and how to end the merge. */
export async function tellNextSteps(
  session: Session,
  workflow: Workflow,
  name: string,
  conflicts: readonly Conflict[],
): Promise<void> {
  const { out } = session;
  const several = (await workflow.storedMerges()).length > 1;
  const named = several ? ` ${name}` : "";
  const rows = [
    [`  ${resolveCommand(conflicts)}${several ? ` --merge ${name}` : ""}`, RESOLUTIONS],
    [`  agstate merge --continue${named}`, "when all are resolved"],
    [`  agstate merge --abort${named}`, "gives it up"],
  ];
  for (const [command = "", words = ""] of rows) {
    await out.line(besideOrBelow(command, out.paint.dim(words)));
  }
}

const RESOLUTIONS = "or --ours, --value JSON, --delete";

/** A command that would resolve the first conflict, in words that can be copied. */
function resolveCommand(conflicts: readonly Conflict[]): string {
  const [group = []] = byPath(conflicts);
  const [first] = group;
  const { part = "state", path: pointer = "" } = first ?? {};
  // A policy is named by the path that it is for.
  const named = part === "policy" ? (parsePointer(pointer)[0] ?? "") : pointer;
  const path = shellWord(named) ?? "PATH";
  const branch = group.length > 1 ? ` ${shellWord(first?.theirs.branch ?? "") ?? "BRANCH"}` : "";
  return `agstate resolve ${path} --theirs${branch}${part === "policy" ? " --part policy" : ""}`;
}

const COMMAND_WIDTH = 44;

function besideOrBelow(command: string, words: string): string {
  return command.length <= COMMAND_WIDTH
    ? `${command.padEnd(COMMAND_WIDTH)}  ${words}`
    : `${command}\n${" ".repeat(COMMAND_WIDTH)}  ${words}`;
}

export function mergeToEnd(
  stored: StoredMerge,
  options: { readonly author?: string; readonly message?: string },
): Promise<MergeResult> {
  const { author, message } = options;
  return stored.continue({
    ...(author === undefined ? {} : { author }),
    ...(message === undefined ? {} : { message }),
  });
}

export async function abortStored(
  session: Session,
  workflow: Workflow,
  given: string | undefined,
): Promise<undefined> {
  const { out } = session;
  const stored = await workflow.storedMerge(given);
  const { name, into, operation } = stored.info;
  await stored.abort();
  if (out.json) return void (await out.value({ aborted: name, into }));
  const stays = `${paintBranch(out.paint, into)} is as it was`;
  await out.line(`Gave up the ${operation} ${escapeLine(name)}; ${stays}.`);
}

/** A stored merge with the paths that are open; null when it cannot be tried now, and why. */
export interface StoredOverview {
  readonly info: StoredMerge["info"];
  readonly open: readonly Pick<Conflict, "part" | "path">[] | null;
  readonly problem: string | null;
}

export async function overviewOf(workflow: Workflow): Promise<StoredOverview[]> {
  const overviews: StoredOverview[] = [];
  for (const stored of await workflow.storedMerges()) {
    const { info } = stored;
    try {
      overviews.push({ info, open: await stored.openPaths(), problem: null });
    } catch (error) {
      // One that cannot be tried now, such as for want of a resolver, must not hide the others.
      if (!isAgstateError(error)) throw error;
      overviews.push({ info, open: null, problem: error.code });
    }
  }
  return overviews;
}

/** Stored merges as lines, one each: name, what is open, what it merges, how old it is. */
export function overviewLines(session: Session, overviews: readonly StoredOverview[]): string[] {
  const { paint } = session.out;
  return columns(
    overviews.map(({ info, open, problem }) => {
      const [source] = info.sources;
      const more = info.sources.length > 1 ? ` and ${info.sources.length - 1} more` : "";
      const from = cutTo(escapeLine(source?.branch ?? ""), 28);
      const operation = info.operation === "merge" ? "" : `${info.operation} `;
      const into = info.into === "canonical" ? "" : ` into ${cutTo(escapeLine(info.into), 28)}`;
      const state =
        open === null
          ? paint.bad(problem ?? "")
          : open.length === 0
            ? paint.good("ready to continue")
            : paint.bad(`${open.length} open`);
      return [
        paint.bold(escapeLine(info.name)),
        state,
        `${operation}${from}${more}${into}`,
        paint.dim(ago(info.date)),
      ];
    }),
  );
}

export async function listStored(session: Session, workflow: Workflow): Promise<undefined> {
  const { out } = session;
  const overviews = await overviewOf(workflow);
  if (out.json) {
    for (const { info, open, problem } of overviews) await out.value({ ...info, open, problem });
    return;
  }
  if (overviews.length === 0) await out.line("No merge waits for its conflicts to be resolved.");
  for (const line of overviewLines(session, overviews)) await out.line(line);
}

/** The paths that are open in a stored merge, after something was resolved, and what to do next. */
export async function tellWhatIsLeft(
  session: Session,
  workflow: Workflow,
  stored: StoredMerge,
): Promise<void> {
  const { out } = session;
  const open = await stored.openPaths();
  const several = (await workflow.storedMerges()).length > 1;
  if (open.length === 0) {
    const named = several ? ` ${stored.name}` : "";
    await out.line(`Nothing is open any more; finish with agstate merge --continue${named}`);
    return;
  }
  await out.line(`${plural(open.length, "path is", "paths are")} left to resolve:`);
  for (const place of open.slice(0, PATHS_SHOWN)) {
    await out.line(`  ${out.paint.path(shownPath(place))}`);
  }
  if (open.length > PATHS_SHOWN) {
    await out.line(out.paint.dim(`  and ${open.length - PATHS_SHOWN} more`));
  }
}
