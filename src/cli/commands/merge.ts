import { AgstateError } from "../../core/errors.js";
import { branchRef, shortRefName } from "../../refs/names.js";
import type { MergeOptions, MergePreview, MergeResult } from "../../store/merge/types.js";
import type { Workflow } from "../../store/workflow.js";
import { EXIT } from "../exit-codes.js";
import { policiesFrom } from "../policies.js";
import { changeLines } from "../render/changes.js";
import { shortId } from "../render/commit.js";
import { escapeLine } from "../render/escape.js";
import { ChangeSummary, contributionLines, newHeadLine, paintBranch } from "../render/merge.js";
import { plural } from "../render/sizes.js";
import type { Session } from "../session.js";
import { abortStored, listStored, mergeToEnd, tellConflicts, tellStored } from "./stored-merge.js";

interface Options {
  readonly preview?: boolean;
  readonly policy?: string[];
  readonly into?: string;
  readonly message?: string;
  readonly author?: string;
  readonly ff?: boolean;
  readonly ffOnly?: boolean;
  readonly allowUnrelated?: boolean;
  readonly allowOpenIntents?: boolean;
  readonly continue?: string | true;
  readonly abort?: string | true;
  readonly list?: boolean;
}

/** How many changes a preview shows. */
const CHANGES_SHOWN = 30;

/** `agstate merge`: merges branches, and finishes, gives up and lists merges that conflicts stopped. */
export async function run(
  session: Session,
  branches: readonly string[],
  options: Options,
): Promise<undefined | number> {
  checkTogether(branches, options);
  const workflow = await session.workflow();
  if (options.list === true) return listStored(session, workflow);
  if (options.abort !== undefined) return abortStored(session, workflow, nameOf(options.abort));
  if (options.continue !== undefined) {
    const stored = await workflow.storedMerge(nameOf(options.continue));
    const { into, operation } = stored.info;
    const result = await mergeToEnd(stored, options);
    return tell(session, workflow, into, result, operation);
  }
  const asked = mergeOptions(options);
  if (options.preview === true) {
    return tellPreview(session, options.into, await workflow.preview(branches, asked));
  }
  const result = await workflow.merge(branches, { ...asked, onConflict: "store" });
  return tell(session, workflow, options.into, result, "merge");
}

/** Refuses what cannot be meant together. */
function checkTogether(branches: readonly string[], options: Options): void {
  const { list, abort, continue: goOn, ff, ffOnly } = options;
  const isStored = list === true || abort !== undefined || goOn !== undefined;
  const problem =
    isStored && branches.length > 0
      ? "--continue, --abort and --list take no branches: a stored merge has its own"
      : !isStored && branches.length === 0
        ? "name at least one branch to merge; or see agstate merge --list for merges to continue"
        : ff === false && ffOnly === true
          ? "--no-ff and --ff-only exclude each other"
          : null;
  if (problem !== null) throw new AgstateError("INVALID_ARGUMENT", problem);
}

function nameOf(given: string | true): string | undefined {
  return given === true ? undefined : given;
}

function mergeOptions(options: Options): MergeOptions {
  const { into, message, author, allowUnrelated, allowOpenIntents } = options;
  return {
    ...(into === undefined ? {} : { into }),
    ...(message === undefined ? {} : { message }),
    ...(author === undefined ? {} : { author }),
    ...(allowUnrelated === undefined ? {} : { allowUnrelated }),
    ...(allowOpenIntents === undefined ? {} : { allowOpenIntents }),
    policies: policiesFrom(options.policy),
    fastForward: options.ffOnly === true ? "only" : options.ff === false ? "never" : "auto",
  };
}

/** Tells how a merge came out: what was merged, where the branch is now, what changed in the state. */
async function tell(
  session: Session,
  workflow: Workflow,
  into: string | undefined,
  result: MergeResult,
  operation: string,
): Promise<undefined | number> {
  const { out } = session;
  const branch = branchName(into);
  const { status, commit, target } = result;
  const code = status === "conflict" ? EXIT.conflict : undefined;
  const moved = commit !== null && commit.id !== target.id;
  const summary = moved
    ? await ChangeSummary.of(workflow.changes(target.id, commit.id))
    : await ChangeSummary.of([]);
  if (out.json) {
    await out.value({ ...result, into: branch, changes: summary.total });
    return code;
  }
  const { paint } = out;
  if (commit === null) {
    const { stored } = result;
    await tellConflicts(session, result.conflicts, branch);
    await tellStored(session, workflow, stored as string, result.conflicts, operation);
    return code;
  }
  const from = shortId(target.id);
  if (!moved) {
    await out.line(`Already up to date: ${paintBranch(paint, branch)} stays at ${paint.id(from)}.`);
  } else if (status === "fast-forward") {
    await out.line(`Fast-forward ${paint.id(from)}..${paint.id(shortId(commit.id))}`);
  }
  if (moved) await out.line(newHeadLine(paint, branch, commit));
  // A cherry-pick or revert that was finished merged no branch.
  if (operation === "merge") {
    for (const line of contributionLines(paint, result.contributions)) await out.line(line);
  }
  if (moved) for (const line of summary.lines(paint)) await out.line(line);
  if (result.attempts > 1) {
    await out.line(
      paint.dim(
        `It took ${result.attempts} attempts: others moved ${escapeLine(branch)} meanwhile.`,
      ),
    );
  }
  return code;
}

async function tellPreview(
  session: Session,
  into: string | undefined,
  preview: MergePreview,
): Promise<undefined | number> {
  const { out } = session;
  const branch = branchName(into);
  const { status, target, commit, conflicts, contributions, changes } = preview;
  const code = status === "conflict" ? EXIT.conflict : undefined;
  if (out.json) {
    const data = { status, into: branch, target, commit, conflicts, contributions, changes };
    await out.value(data);
    return code;
  }
  const { paint } = out;
  const at = `${paintBranch(paint, branch)} at ${paint.id(shortId(target.id))}`;
  const words = {
    "up-to-date": `Already up to date: ${at} has everything.`,
    "fast-forward": `Would fast-forward ${at} to ${paint.id(shortId(commit?.id ?? ""))}.`,
    merged: `Would merge into ${at}.`,
    conflict: `Would conflict at ${plural(new Set(conflicts.map((c) => c.part + c.path)).size, "path")} with ${at}.`,
  };
  await out.line(`${words[status]} ${paint.dim("Nothing was written.")}`);
  for (const line of contributionLines(paint, contributions)) await out.line(line);
  if (conflicts.length > 0) {
    await out.line();
    await tellConflicts(session, conflicts);
  }
  if (status === "up-to-date") return code;
  await out.line();
  await out.line(paint.bold(conflicts.length > 0 ? "Changes beside the conflicts" : "Changes"));
  for (const change of changes.slice(0, CHANGES_SHOWN)) {
    for (const line of changeLines(paint, change)) await out.line(`  ${line}`);
  }
  if (changes.length > CHANGES_SHOWN) {
    const more = plural(changes.length - CHANGES_SHOWN, "more change");
    await out.line(paint.dim(`  and ${more}; --json shows all`));
  }
  const summary = await ChangeSummary.of(changes);
  await out.line(summary.lines(paint).at(-1));
  return code;
}

function branchName(into = "canonical"): string {
  return shortRefName(branchRef(into));
}
