import { shortRefName } from "../../refs/names.js";
import type { MergeRequest } from "./request.js";

/** How many branches a merge's message lists. */
const LISTED_MAX = 100;
/** The longest list of branches in a log entry, in characters. */
const REASON_MAX_LENGTH = 200;

/** What a merge, cherry-pick or revert says when its maker says nothing; in Git's words. */
export function mergeMessage(request: MergeRequest): string {
  const { operation, sources } = request;
  const { branch, commit } = sources[0] as MergeRequest["sources"][number];
  const [subject = ""] = commit.message.split("\n", 1);
  switch (operation) {
    case "merge": {
      const into = shortRefName(request.into);
      if (sources.length === 1) return `Merge ${branch} into ${into}`;
      const listed = sources.slice(0, LISTED_MAX).map((source) => `- ${source.branch}`);
      if (sources.length > LISTED_MAX) listed.push(`- and ${sources.length - LISTED_MAX} more`);
      return `Merge ${sources.length} branches into ${into}\n\n${listed.join("\n")}`;
    }
    case "cherry-pick":
      return `${commit.message}${commit.message === "" ? "" : "\n\n"}(cherry picked from commit ${commit.id})`;
    case "revert":
      return `Revert "${subject}"\n\nThis reverts commit ${commit.id}.`;
  }
}

/** What the target's reflog says. */
export function mergeReason(
  { operation, sources }: MergeRequest,
  attempt: { readonly kind: string },
): string {
  const shown =
    operation === "merge" ? sources.map(({ branch }) => branch) : [sources[0]?.commit.id];
  const names = shown.join(" ");
  const list = names.length <= REASON_MAX_LENGTH ? names : `${sources.length} branches`;
  return `${operation} ${list}${attempt.kind === "fast-forward" ? ": fast-forward" : ""}`;
}
