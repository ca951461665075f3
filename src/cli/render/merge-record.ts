import type { MergeRecord } from "../../store/merge/types.js";
import { columns } from "./columns.js";
import { shortId } from "./commit.js";
import { shownPath } from "./conflict.js";
import { cutTo } from "./cut.js";
import { escapeLine } from "./escape.js";
import { paintBranch } from "./merge.js";
import type { Paint } from "./paint.js";
import { plural } from "./sizes.js";

/** How many sources, policies and resolutions are shown, of each; `--json` shows all. */
const ROWS_SHOWN = 20;
const PATH_WIDTH = 40;

/** How a merge came out as it did, in few lines: what was merged, the policies in force, the conflicts resolved. */
export function mergeRecordLines(paint: Paint, record: MergeRecord): string[] {
  // A stored merge that is not finished keeps its request here, and knows no bases yet.
  const pending = (record as { readonly pending?: boolean }).pending === true;
  const { operation } = record;
  const what = { merge: "Merge into", "cherry-pick": "Cherry-pick onto", revert: "Revert on" }[
    operation
  ];
  const into = paintBranch(paint, record.into.replace(/^refs\/heads\//, ""));
  const migrated =
    record.migratedFrom === undefined ? "" : `, migrated from version ${record.migratedFrom}`;
  const title = `${paint.bold(what)} ${into}${pending ? ", not finished" : ""}${migrated}`;
  return [
    title,
    ...section(paint, sourceRows(paint, record)),
    ...section(paint, policyRows(paint, record)),
    ...section(paint, resolvedRows(paint, record)),
  ];
}

function section(paint: Paint, rows: readonly string[][]): string[] {
  const lines = columns(rows.slice(0, ROWS_SHOWN)).map((line) => `  ${line}`);
  const more = rows.length - ROWS_SHOWN;
  return more > 0 ? [...lines, paint.dim(`  and ${more} more; --json shows all`)] : lines;
}

function sourceRows(paint: Paint, { operation, sources }: MergeRecord): string[][] {
  return sources.map(({ branch, head, bases, migratedFrom }) => {
    // What a revert starts from is the commit itself.
    const known: readonly string[] = operation === "revert" ? [] : (bases ?? []);
    const since = known.length === 1 ? shortId(known[0] as string) : plural(known.length, "base");
    const said = [
      ...(known.length === 0 ? [] : [`since ${since}`]),
      ...(migratedFrom === undefined ? [] : [`migrated from version ${migratedFrom}`]),
    ];
    const id = paint.id(shortId(head));
    return [
      "source",
      paintBranch(paint, branch),
      id,
      said.length === 0 ? "" : paint.dim(said.join(", ")),
    ];
  });
}

function policyRows(paint: Paint, { policies, callPolicies = {} }: MergeRecord): string[][] {
  return Object.entries(policies).map(([path, strategy]) => [
    "policy",
    paint.path(pathCell("state", path)),
    escapeLine(strategy),
    Object.hasOwn(callPolicies, path) ? paint.dim("for this call") : "",
  ]);
}

function resolvedRows(paint: Paint, { resolved = [] }: MergeRecord): string[][] {
  return resolved.map(({ part, path, how, branch, by }) => [
    "resolved",
    paint.path(pathCell(part, path)),
    branch === undefined ? how : `${how} of ${cutTo(escapeLine(branch), 40)}`,
    paint.dim(`by ${cutTo(escapeLine(by), 24)}`),
  ]);
}

function pathCell(part: "state" | "policy", path: string): string {
  return cutTo(shownPath({ part, path }), PATH_WIDTH);
}
