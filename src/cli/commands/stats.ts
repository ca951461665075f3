import type { Share, WorkflowStats } from "../../store/stats.js";
import { cutTo } from "../render/cut.js";
import { escapeLine } from "../render/escape.js";
import { formatBytes, plural } from "../render/sizes.js";
import type { Session } from "../session.js";

const NAME_WIDTH_MAX = 24;

/** `agstate stats`: of the named workflow, or of every one. */
export async function run(session: Session): Promise<undefined> {
  const { out } = session;
  for await (const workflow of session.workflows()) {
    const stats = await workflow.stats();
    if (out.json) await out.value(stats);
    else for (const line of linesOf(stats)) await out.line(line);
  }
}

/** What stands in the columns after the name: of own and of shared, commits and bytes. */
function cells(share: Share): string[] {
  return [String(share.commits), formatBytes(share.bytes)];
}

function linesOf({ workflow, total, agents, others, unreached }: WorkflowStats): string[] {
  const none: Share = { commits: 0, objects: 0, bytes: 0 };
  const rows = [
    ...agents.map(({ agent, own, shared }) => ({ name: agent ?? "canonical", own, shared })),
    { name: "(other refs)", own: others, shared: none },
    { name: "(unreached)", own: unreached, shared: none },
  ];
  const table = [
    ["", "commits", "alone", "commits", "shared"],
    ...rows.map(({ name, own, shared }) => [
      cutTo(escapeLine(name), NAME_WIDTH_MAX),
      ...cells(own),
      ...cells(shared),
    ]),
  ];
  const widths = table[0]!.map((_, at) => Math.max(...table.map((row) => row[at]!.length)));
  return [
    `${escapeLine(workflow)}: ${plural(total.commits, "commit")}, ${plural(total.objects, "object")}, ${formatBytes(total.bytes)}`,
    ...table.map((row) =>
      row
        .map((cell, at) => (at === 0 ? cell.padEnd(widths[at]!) : cell.padStart(widths[at]!)))
        .join("  ")
        .trimEnd(),
    ),
  ];
}
