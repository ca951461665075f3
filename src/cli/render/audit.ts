import stringWidth from "string-width";
import type { AuditEvent, AuditKind } from "../../store/audit/types.js";
import { paintRefName } from "./commit.js";
import { cutTo, WIDTH } from "./cut.js";
import { escapeLine } from "./escape.js";
import type { Paint } from "./paint.js";

/** What an auditor looks for first. */
const BAD: ReadonlySet<AuditKind> = new Set([
  "refused",
  "discarded",
  "expired",
  "lapsed",
  "delete",
]);

/** How wide a column gets at most; a longer name is cut, a longer kind takes room from what comes last. */
const KIND_WIDTH = 9;
const REF_WIDTH_MAX = 22;
const ACTOR_WIDTH_MAX = 10;
const GAP = "  ";

/** Events as lines of 80 columns, a line with the date before the first of a day; names as wide as the widest until now. */
export class AuditTable {
  private day = "";
  private refWidth = 0;
  private actorWidth = 0;

  constructor(private readonly paint: Paint) {}

  linesOf(event: AuditEvent): string[] {
    const { paint } = this;
    const ref = cutTo(escapeLine(event.shortName), REF_WIDTH_MAX);
    const actor = cutTo(escapeLine(event.actor), ACTOR_WIDTH_MAX);
    this.refWidth = Math.max(this.refWidth, stringWidth(ref));
    this.actorWidth = Math.max(this.actorWidth, stringWidth(actor));
    const [day, time] = event.date.toISOString().slice(0, 19).split("T") as [string, string];
    const kind = event.kind.padEnd(KIND_WIDTH);
    const before = `${time}Z`.length + kind.length + this.refWidth + this.actorWidth;
    const what = cutTo(escapeLine(whatOf(event)), WIDTH - before - 4 * GAP.length);
    const named = { name: event.ref, shortName: ref };
    const cells = [
      paint.dim(`${time}Z`),
      BAD.has(event.kind) ? paint.bad(kind) : kind,
      paintRefName(paint, named) + " ".repeat(this.refWidth - stringWidth(ref)),
      actor + " ".repeat(this.actorWidth - stringWidth(actor)),
      what,
    ];
    const dated = day === this.day ? [] : [paint.dim(day)];
    this.day = day;
    return [...dated, cells.join(GAP).trimEnd()];
  }
}

/** Steps by number and name, a refusal by what was refused, and anything else by what the log says. */
function whatOf({ steps, facts, reason }: AuditEvent): string {
  if (steps !== null && steps.length > 0) {
    return steps
      .map(({ number, name, status }) => `${number} ${name ?? "(no name)"} ${status}`)
      .join(", ");
  }
  const times = typeof facts?.times === "number" && facts.times > 1 ? `${facts.times} times: ` : "";
  if (typeof facts?.name === "string") {
    const why = typeof facts.why === "string" ? `: ${facts.why}` : "";
    return `${times}${facts.name}${why}`;
  }
  return reason;
}
