import {
  type HistoryReport,
  KEEPERS,
  type Keeper,
  type PayloadReport,
  type RetentionReport,
} from "../../store/retention/types.js";
import { escapeLine } from "./escape.js";
import { formatBytes, plural } from "./sizes.js";
import { wrap } from "./wrap.js";

/** What keeps something, in words. */
const KEEPER_WORDS: Readonly<Record<Keeper, string>> = {
  branches: "heads of branches",
  bases: "living branches, to where they part",
  runs: "open runs and steps",
  merges: "stored merges",
  refs: "reviews and other refs",
  undo: "the grace period",
  tags: "tags",
  holds: "holds",
};

/** A report as lines of 80 columns. */
export function retentionLines(report: RetentionReport): string[] {
  const { workflow, policy, payload, history, holds, dryRun, spared } = report;
  const lines = [`${escapeLine(workflow)}: ${policy}`];
  if (payload !== null) lines.push(...payloadLines(payload, dryRun));
  if (history !== null) lines.push(...historyLines(history, dryRun));
  if (holds.length > 0) lines.push(...indented(`Holds: ${holds.map(escapeLine).join(", ")}`));
  if (spared > 0) lines.push(`  Came into use meanwhile, and stays: ${spared}`);
  return lines;
}

function payloadLines(payload: PayloadReport, dryRun: boolean): string[] {
  const { blobs, trees, inline, commits, bytes, before } = payload;
  const what = [
    blobs > 0 ? plural(blobs, "blob") : "",
    trees > 0 ? plural(trees, "tree") : "",
    inline > 0 ? `${plural(inline, "record")} in commits` : "",
  ].filter(Boolean);
  const verb = dryRun ? "would expire" : "expired";
  const said =
    what.length === 0
      ? "nothing to expire"
      : `${verb} ${what.join(", ")} (${formatBytes(bytes)}) of ${plural(commits, "commit")}`;
  return [
    ...indented(`Payload of before ${day(before)}: ${said}`),
    ...KEEPERS.flatMap((keeper) => {
      const kept = payload.kept[keeper];
      if (kept === undefined) return [];
      const count = plural(kept.blobs + kept.trees, "object");
      return indented(`kept by ${KEEPER_WORDS[keeper]}: ${count} (${formatBytes(kept.bytes)})`, 4);
    }),
  ];
}

function historyLines(history: HistoryReport, dryRun: boolean): string[] {
  const { commits, blobs, trees, bytes, boundaries, pending, before, removed } = history;
  const lines: string[] = [];
  if (commits === 0) lines.push(...indented(`History of before ${day(before)}: nothing to drop`));
  else {
    const verb = dryRun ? "would drop" : "dropped";
    const rest = [
      blobs > 0 ? plural(blobs, "blob") : "",
      trees > 0 ? plural(trees, "tree") : "",
      pending > 0 ? plural(pending, "pending row") : "",
    ].filter(Boolean);
    const what = `${plural(commits, "commit")} behind ${plural(boundaries, "boundary", "boundaries")}`;
    const beside = rest.length === 0 ? "" : `, with ${rest.join(", ")}`;
    lines.push(
      ...indented(
        `History of before ${day(before)}: ${verb} ${what}${beside} (${formatBytes(bytes)})`,
      ),
    );
  }
  for (const keeper of KEEPERS) {
    const count = history.kept[keeper];
    if (count !== undefined) {
      lines.push(...indented(`kept by ${KEEPER_WORDS[keeper]}: ${plural(count, "commit")}`, 4));
    }
  }
  if (removed !== null && removed.commits < commits) {
    const left = plural(commits - removed.commits, "commit");
    lines.push(
      ...indented(
        `${left} are within the grace period of gc, and go when it is over (--grace 0: now)`,
        4,
      ),
    );
  }
  return lines;
}

function day(date: Date): string {
  return date.toISOString().slice(0, 10);
}

function indented(text: string, by = 2): string[] {
  return wrap(text, 78 - by).map((line, i) => " ".repeat(i === 0 ? by : by + 2) + line);
}
