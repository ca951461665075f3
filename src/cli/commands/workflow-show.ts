import type { Keyed, PlacedPart } from "../../store/types.js";

import { columns } from "../render/columns.js";
import { formatDate } from "../render/commit.js";
import { escapeLine } from "../render/escape.js";
import { formatBytes, plural } from "../render/sizes.js";
import type { Session } from "../session.js";

/** What of a workflow has keys, in words. */
const KEYED: Readonly<Record<Keyed, string>> = {
  nothing: "nothing is encrypted",
  hashes: "hashes are keyed, nothing is encrypted",
  payloads: "payloads are encrypted",
};

/** `agstate workflow show`. */
export async function run(session: Session, args: readonly string[]): Promise<undefined> {
  const { out } = session;
  const workflow = await session.workflow(args[0]);
  const { info } = workflow;
  const usage = await workflow.usage();
  const refs = await workflow.refs();
  if (out.json) {
    return void (await out.value({ ...info, usage, refs: refs.map((ref) => ref.shortName) }));
  }
  const none = out.paint.dim("none");
  const rows = [
    ["Workflow", out.paint.bold(escapeLine(info.id))],
    ["Created", formatDate(info.createdAt)],
    ["Completed", info.completedAt === null ? none : formatDate(info.completedAt)],
    ["Classification", info.classification],
    ["Storage region", info.storageRegion === null ? none : escapeLine(info.storageRegion)],
    ["Retention", info.retentionPolicy ?? none],
    ["Isolated paths", info.isolation.map(escapeLine).join(", ") || none],
    ["Elsewhere", info.placement.map(placedWords).join(", ") || none],
    ["Subjects' paths", info.subjects.map(escapeLine).join(", ") || none],
    ["Keys", KEYED[info.keyed]],
    ["Branches", String(refs.filter((ref) => ref.name.startsWith("refs/heads/")).length)],
    ["Tags", String(refs.filter((ref) => ref.name.startsWith("refs/tags/")).length)],
    ["Holds", String(refs.filter((ref) => ref.name.startsWith("refs/holds/")).length)],
    [
      "Contains",
      `${plural(usage.commits, "commit")}, ${plural(usage.objects, "object")}, ${formatBytes(usage.bytes)}`,
    ],
  ];
  if (usage.pending > 0) rows.push(["Beside it", plural(usage.pending, "pending row")]);
  for (const line of columns(rows)) await out.line(line);
}

function placedWords(part: PlacedPart): string {
  const { region, classification } = part;
  const what = "path" in part ? escapeLine(part.path) : part.phase;
  return `${what} in ${escapeLine(region)} (${classification})`;
}
