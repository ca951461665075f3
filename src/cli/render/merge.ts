import type { Change } from "../../merge/diff.js";
import type { Contribution } from "../../store/merge/types.js";
import type { Commit } from "../../store/types.js";
import { columns } from "./columns.js";
import { shortId, subjectOf } from "./commit.js";
import { cutTo, WIDTH } from "./cut.js";
import { escapeLine } from "./escape.js";
import type { Paint } from "./paint.js";
import { plural } from "./sizes.js";

/** How many members of the state a summary of changes lists. */
const MEMBERS_SHOWN = 10;
const BRANCH_WIDTH = 44;
const MEMBER_WIDTH = 40;

export function paintBranch(paint: Paint, branch: string): string {
  const name = cutTo(escapeLine(branch), BRANCH_WIDTH);
  return branch === "canonical" ? paint.canonical(name) : paint.ref(name);
}

/** A branch's new head, as `git commit` and `git merge` tell of it. */
export function newHeadLine(paint: Paint, branch: string, commit: Commit): string {
  const name = cutTo(escapeLine(branch), BRANCH_WIDTH);
  const subject = cutTo(subjectOf(commit.message), WIDTH - 14);
  return `[${name} ${paint.id(shortId(commit.id))}] ${subject}`.trimEnd();
}

/** What each of the merged branches brought, a line each. */
export function contributionLines(paint: Paint, contributions: readonly Contribution[]): string[] {
  return columns(
    contributions.map(({ branch, status, commits, conflicts }) => [
      ` ${paintBranch(paint, branch)}`,
      status === "contained" ? paint.dim("has nothing new") : plural(commits, "commit"),
      conflicts > 0 ? paint.bad(`conflicts at ${plural(conflicts, "path")}`) : "",
    ]),
  );
}

/** How many values changed, in all and below each member of the state. */
export class ChangeSummary {
  private readonly members = new Map<string, Counts>();
  readonly total: Counts = { added: 0, removed: 0, changed: 0 };

  static async of(changes: AsyncIterable<Change> | Iterable<Change>): Promise<ChangeSummary> {
    const summary = new ChangeSummary();
    for await (const change of changes) summary.add(change);
    return summary;
  }

  private add({ kind, path }: Change): void {
    const end = path.indexOf("/", 1);
    const key = end < 0 ? path : path.slice(0, end);
    const counts = this.members.get(key) ?? { added: 0, removed: 0, changed: 0 };
    counts[kind]++;
    this.total[kind]++;
    this.members.set(key, counts);
  }

  lines(paint: Paint): string[] {
    const rows: string[][] = [];
    for (const [path, counts] of [...this.members].slice(0, MEMBERS_SHOWN)) {
      const shown = path === "" ? "(the whole state)" : cutTo(escapeLine(path), MEMBER_WIDTH);
      rows.push([` ${paint.path(shown)}`, marks(paint, counts)]);
    }
    const lines = columns(rows);
    const more = this.members.size - rows.length;
    if (more > 0) lines.push(paint.dim(` and ${plural(more, "more member")} of the state`));
    const { added, removed, changed } = this.total;
    const all = added + removed + changed;
    lines.push(
      all === 0
        ? paint.dim("The state is as before.")
        : paint.dim(
            `${plural(all, "change")}: ${added} added, ${removed} removed, ${changed} changed`,
          ),
    );
    return lines;
  }
}

interface Counts {
  added: number;
  removed: number;
  changed: number;
}

function marks(paint: Paint, { added, removed, changed }: Counts): string {
  return [
    added > 0 ? paint.added(`+${added}`) : "",
    removed > 0 ? paint.removed(`-${removed}`) : "",
    changed > 0 ? `~${changed}` : "",
  ]
    .filter(Boolean)
    .join(" ");
}
