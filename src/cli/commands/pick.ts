import { branchRef, shortRefName } from "../../refs/names.js";
import type { PickOptions } from "../../store/merge/types.js";
import { EXIT } from "../exit-codes.js";
import { policiesFrom } from "../policies.js";
import { shortId } from "../render/commit.js";
import { escapeLine } from "../render/escape.js";
import { ChangeSummary, newHeadLine, paintBranch } from "../render/merge.js";
import type { Session } from "../session.js";
import { tellConflicts, tellStored } from "./stored-merge.js";

export interface Options {
  readonly mainline?: number;
  readonly message?: string;
  readonly author?: string;
  readonly policy?: string[];
}

/** Applies a commit's change to a branch, or undoes it there, and tells how that came out. */
export async function pick(
  session: Session,
  operation: "cherry-pick" | "revert",
  revision: string,
  onto: string | undefined,
  options: Options,
): Promise<undefined | number> {
  const { out } = session;
  const workflow = await session.workflow();
  const branch = shortRefName(branchRef(onto ?? "canonical"));
  const asked: PickOptions = {
    onto: branch,
    policies: policiesFrom(options.policy),
    onConflict: "store",
    ...(options.mainline === undefined ? {} : { mainline: options.mainline }),
    ...(options.message === undefined ? {} : { message: options.message }),
    ...(options.author === undefined ? {} : { author: options.author }),
  };
  const result =
    operation === "revert"
      ? await workflow.revert(revision, asked)
      : await workflow.cherryPick(revision, asked);
  const { status, commit } = result;
  const parent = status === "applied" ? commit?.parents[0] : undefined;
  const summary = await ChangeSummary.of(
    commit === null || parent === undefined ? [] : workflow.changes(parent, commit.id),
  );
  const code = status === "conflict" ? EXIT.conflict : undefined;
  if (out.json) {
    await out.value({ ...result, onto: branch, changes: summary.total });
    return code;
  }
  const { paint } = out;
  if (commit === null) {
    await tellConflicts(session, result.conflicts, branch);
    await tellStored(session, workflow, result.stored as string, result.conflicts, operation);
  } else if (status === "up-to-date") {
    const has = operation === "revert" ? "does not have that change" : "has that change already";
    const stays = `it stays at ${paint.id(shortId(commit.id))}`;
    await out.line(`Nothing to do: ${paintBranch(paint, branch)} ${has}; ${stays}.`);
  } else {
    await out.line(newHeadLine(paint, branch, commit));
    for (const line of summary.lines(paint)) await out.line(line);
  }
  if (result.attempts > 1) {
    await out.line(
      paint.dim(
        `It took ${result.attempts} attempts: others moved ${escapeLine(branch)} meanwhile.`,
      ),
    );
  }
  return code;
}
