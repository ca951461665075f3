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

/** How wide each column gets at most; what is longer stands out of its column, or is cut. */
const KIND_WIDTH = 9;
const REF_WIDTH_MAX = 24;
const ACTOR_WIDTH_MAX = 10;
const WHAT_WIDTH_MIN = 16;

/** Events as lines of 80 columns; names as wide as the widest until now. */
export class AuditTable {
  private refWidth = 0;
  private actorWidth = 0;

  constructor(private readonly paint: Paint) {}

  lineOf(event: AuditEvent): string {
    const { paint } = this;
    const ref = cutTo(escapeLine(event.shortName), REF_WIDTH_MAX);
    const actor = cutTo(escapeLine(event.actor), ACTOR_WIDTH_MAX);
    this.refWidth = Math.max(this.refWidth, stringWidth(ref));
    this.actorWidth = Math.max(this.actorWidth, stringWidth(actor));
    const when = event.date.toISOString().slice(0, 19).replace("T", " ");
    const kind = event.kind.padEnd(KIND_WIDTH);
    const used = when.length + 3 + stringWidth(kind) + 2 + this.refWidth + 2 + this.actorWidth + 2;
    const what = cutTo(escapeLine(whatOf(event)), Math.max(WHAT_WIDTH_MIN, WIDTH - used));
    const named = { name: event.ref, shortName: ref };
    const cells = [
      paint.dim(`${when}Z`),
      BAD.has(event.kind) ? paint.bad(kind) : kind,
      paintRefName(paint, named) + " ".repeat(this.refWidth - stringWidth(ref)),
      actor + " ".repeat(this.actorWidth - stringWidth(actor)),
      what,
    ];
    return cells.join("  ").trimEnd();
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
