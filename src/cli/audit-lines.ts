import type { AuditTrail } from "../store/audit/trail.js";
import type { AuditEvent } from "../store/audit/types.js";

/**
 * Events as JSON lines, with the cursor on those that can bear it.
 *
 * A cursor grows with the number of refs, so that one on every line would make most of a wide workflow's
 * text. It is on a line once it is no longer than the lines since the last one; `last` asks for it in any case.
 * Without one, the position after a line is the last cursor before it, and the `ref` and `seq` of each line since.
 */
export class AuditLines {
  private since = Number.POSITIVE_INFINITY;
  private cursorLength = 0;

  constructor(private readonly trail: Pick<AuditTrail, "cursor">) {}

  /** A line, without its line feed, of the event that the trail gave last. */
  lineOf(event: AuditEvent, last: boolean): string {
    const line = JSON.stringify(event);
    this.since += line.length;
    if (!last && this.since < this.cursorLength) return line;
    const { cursor } = this.trail;
    this.since = 0;
    this.cursorLength = cursor.length;
    return JSON.stringify({ ...event, cursor });
  }
}
