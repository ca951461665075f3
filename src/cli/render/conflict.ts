import stringWidth from "string-width";
import { parsePointer } from "../../core/json-pointer.js";
import type { ConflictKind } from "../../merge/contest.js";
import type { Conflict, ConflictSide } from "../../store/merge/types.js";
import { ago, shortId, subjectOf } from "./commit.js";
import { type ShownValue, shownBase, shownSide } from "./conflict-value.js";
import { cutTo, WIDTH } from "./cut.js";
import { escapeLine } from "./escape.js";
import type { Paint } from "./paint.js";
import { plural } from "./sizes.js";

const WORDS: Readonly<Record<ConflictKind, string>> = {
  "edit/edit": "changed on both sides",
  "edit/delete": "changed on one side, removed on the other",
  "add/add": "added on both sides",
  list: "a list, changed on both sides other than at its end",
  type: "made a value of another type",
};

/** Where the values stand: beside the labels `base`, `ours` and `theirs`. */
const INDENT = 10;
const ROOM = WIDTH - INDENT;
const BRANCH_WIDTH = 30;
const AUTHOR_WIDTH = 16;
/** Of how many branches that conflict at one path the values are shown. */
const CLAIMS_SHOWN = 8;
/** Paths are to be copied, so that only a very long one is cut. */
const PATH_MAX_WIDTH = 400;

/** Conflicts by the path that they are at, in order; those of several branches at one path together. */
export function byPath(conflicts: readonly Conflict[]): Conflict[][] {
  const groups: Conflict[][] = [];
  for (const conflict of conflicts) {
    const last = groups.at(-1)?.[0];
    if (last?.part === conflict.part && last.path === conflict.path) groups.at(-1)?.push(conflict);
    else groups.push([conflict]);
  }
  return groups;
}

/** A path as it is shown; that of a merge policy says so. */
export function shownPath({ part, path }: Pick<Conflict, "part" | "path">): string {
  if (part === "policy" && path === "") return "all merge policies";
  const policy = part === "policy" ? parsePointer(path)[0] : undefined;
  const named = policy ?? path;
  const shown = named === "" ? "(the whole state)" : cutTo(escapeLine(named), PATH_MAX_WIDTH);
  return policy === undefined ? shown : `merge policy of ${shown}`;
}

/** The conflicts at one path as lines: the kind, the path, and the values with who wrote them. */
export function conflictLines(paint: Paint, group: readonly Conflict[]): string[] {
  const [first] = group as [Conflict];
  const kinds = [...new Set(group.map(({ kind }) => kind))];
  const head = `${paint.bad(`CONFLICT (${kinds.join(", ")})`)} ${paint.path(shownPath(first))}`;
  const lines = [head, paint.dim(`  ${kinds.map((kind) => WORDS[kind]).join("; ")}`)];
  let base: string | undefined;
  let ours: string | undefined;
  for (const conflict of group.slice(0, CLAIMS_SHOWN)) {
    // What does not differ from one branch to the next is said once.
    const shown = labelled("base", shownBase(paint, conflict.base, ROOM));
    if (shown.join("\n") !== base) lines.push(...shown);
    base = shown.join("\n");
    const side = sideLines(paint, "ours", conflict, conflict.ours);
    if (side.join("\n") !== ours) lines.push(...side);
    ours = side.join("\n");
    lines.push(...sideLines(paint, "theirs", conflict, conflict.theirs));
  }
  const more = group.length - CLAIMS_SHOWN;
  if (more > 0) {
    lines.push(
      paint.dim(`  ... and ${plural(more, "more branch", "more branches")}; --json shows all`),
    );
  }
  return lines;
}

function sideLines(paint: Paint, label: string, conflict: Conflict, side: ConflictSide): string[] {
  const shown = shownSide(paint, conflict.base, side, ROOM);
  return labelled(label, { ...shown, below: [whoLine(paint, side), ...shown.below] });
}

/** Whose value it is: the branch, and the commit that wrote it, as far as that is known. */
function whoLine(paint: Paint, { branch, writer }: ConflictSide): string {
  const name = cutTo(escapeLine(branch), BRANCH_WIDTH);
  const painted = branch === "canonical" ? paint.canonical(name) : paint.ref(name);
  if (writer === null) return painted;
  const author = cutTo(escapeLine(writer.author), AUTHOR_WIDTH);
  // The name of an agent's own branch says it already.
  const by = branch.startsWith(`agents/${writer.author}/`) ? "" : `${author}, `;
  const who = `(${by}${ago(writer.date)})`;
  const id = shortId(writer.id);
  const left = ROOM - widthOf([name, id, who]);
  const subject = subjectOf(writer.message);
  const rest = left > 8 && subject !== "" ? ` ${cutTo(subject, left)}` : "";
  return `${painted} ${paint.id(id)} ${paint.dim(`${who}${rest}`)}`;
}

/** How many columns words take with a space after each; wide characters are counted as two. */
function widthOf(words: readonly string[]): number {
  return words.reduce((width, word) => width + stringWidth(word) + 1, 0);
}

function labelled(label: string, { head, below }: ShownValue): string[] {
  return [`  ${label}`.padEnd(INDENT) + head, ...below.map((line) => " ".repeat(INDENT) + line)];
}
