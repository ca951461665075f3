import type { BranchMigration, StateMigrationReport } from "../../store/schema/types.js";
import { columns } from "./columns.js";
import { cutTo, WIDTH } from "./cut.js";
import { escapeLine } from "./escape.js";
import { paintBranch } from "./merge.js";
import type { Paint } from "./paint.js";
import { plural } from "./sizes.js";
import { wrap } from "./wrap.js";

const INDENT = "      ";

/** What migrating the states of a workflow came to: a line a branch, and below it what changes, or what went wrong. */
export function migrationLines(paint: Paint, report: StateMigrationReport): string[] {
  const { workflow, version, branches } = report;
  const rows = columns(branches.map((branch) => rowOf(paint, branch)));
  return [
    `${escapeLine(workflow)}: states to version ${version}`,
    ...branches.flatMap((branch, i) => [`  ${rows[i]}`, ...detailLines(paint, branch)]),
  ];
}

function rowOf(paint: Paint, { branch, status, from, to, changes }: BranchMigration): string[] {
  const name = paintBranch(paint, branch);
  if (status === "current") return [name, from === null ? "-" : `${from}`, said(from)];
  const step = `${from} -> ${to}`;
  if (status === "failed") return [name, `${from}`, paint.bad("failed")];
  const verb = status === "pending" ? "would change" : "changed";
  const what = changes === 0 ? "the version alone" : plural(changes, "path");
  return [name, step, `${verb} ${what}`];
}

function said(from: number | null): string {
  return from === null ? "no state" : "up to date";
}

function detailLines(paint: Paint, { error, paths, changes }: BranchMigration): string[] {
  if (error !== null) {
    const text = `${escapeLine(error.message)} (${error.code})`;
    return wrap(text, WIDTH - INDENT.length).map((line) => INDENT + line);
  }
  const mark = { added: paint.added("+"), removed: paint.removed("-"), changed: "~" };
  const lines = paths.map(({ kind, path }) => {
    const shown = path === "" ? "(the whole state)" : escapeLine(path);
    return `${INDENT}${mark[kind]} ${paint.path(cutTo(shown, WIDTH - INDENT.length - 2))}`;
  });
  const more = changes - paths.length;
  return more > 0 ? [...lines, paint.dim(`${INDENT}and ${more} more`)] : lines;
}
