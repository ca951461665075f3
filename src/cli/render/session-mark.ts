import type { Resumption, SessionMark } from "../../store/handoff/mark.js";
import { columns } from "./columns.js";
import { formatDate } from "./commit.js";
import { cutTo } from "./cut.js";
import { escapeLine } from "./escape.js";
import { handoffLines, resourceName } from "./handoff.js";
import type { Paint } from "./paint.js";

/** How many changes are shown; `--json` shows all. */
const SHOWN = 20;

/** What a commit says of a session of its branch. */
export function sessionLines(paint: Paint, mark: SessionMark): string[] {
  if (mark.kind === "handoff") return handoffLines(paint, mark.handoff);
  if (mark.kind === "resumed") return resumptionLines(paint, mark.resumed);
  return [`${paint.bold("A session began or ended here")}; what is said of it is ${mark.reason}`];
}

function resumptionLines(paint: Paint, resumed: Resumption): string[] {
  const { by, at, tag, verdict, review, changes, drift } = resumed;
  const isFresh = verdict === "fresh";
  const rows = [
    ["By", `${cutTo(escapeLine(by), 40)}, ${formatDate(at)}`],
    ["Verdict", isFresh ? paint.good(verdict) : paint.bad(verdict)],
    ...(tag === null ? [] : [["From", paint.tag(cutTo(escapeLine(`tags/${tag}`), 60))]]),
    ...(review === null ? [] : [["Review", paint.id(cutTo(escapeLine(review), 60))]]),
    ...(drift.length === 0 ? [] : [["Drift", `${drift.length} of its fingerprints differ`]]),
  ];
  const lines = columns(rows).map((line) => `  ${line}`);
  for (const change of changes.slice(0, SHOWN)) {
    const { found, was, now, tolerated } = change;
    const said = tolerated ? `${found}, tolerated` : found;
    lines.push(`  ${resourceName(paint, change)} ${tolerated ? said : paint.bad(said)}`);
    if (was !== null) lines.push(`    ${paint.removed(`- ${cutTo(escapeLine(was), 70)}`)}`);
    if (now !== null) lines.push(`    ${paint.added(`+ ${cutTo(escapeLine(now), 70)}`)}`);
  }
  if (changes.length > SHOWN) lines.push(paint.dim(`  and ${changes.length - SHOWN} more`));
  return [paint.bold("Taken up"), ...lines];
}
