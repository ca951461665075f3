import stringWidth from "string-width";
import type { Move } from "../../store/watch.js";
import { paintRefName, shortId } from "../render/commit.js";
import { escapeLine } from "../render/escape.js";
import type { Session } from "../session.js";

interface Options {
  readonly fromStart?: boolean;
  readonly maxCount?: number;
}

/** `agstate watch [PATTERN]`: a line a move, until Ctrl-C. */
export async function run(
  session: Session,
  args: readonly string[],
  options: Options,
): Promise<undefined> {
  const { out } = session;
  const workflow = await session.workflow();
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
  const fromStart = options.fromStart === true;
  const from = fromStart ? "start" : "now";
  const moves = workflow.watch(args[0], { signal: stop.signal, from });
  await moves.start();
  out.note(`Watching workflow ${escapeLine(workflow.id)}; Ctrl-C ends it.`);
  let left = options.maxCount ?? Number.POSITIVE_INFINITY;
  let widest = 0;
  for await (const move of moves) {
    if (out.json) await out.value(move);
    else {
      widest = Math.max(widest, stringWidth(escapeLine(move.shortName)));
      await out.line(lineOf(session, move, widest, fromStart));
    }
    left--;
    if (left <= 0) return;
  }
}

/**
 * A move as `agstate reflog` shows an entry, names as wide as the widest until now; of what happens
 * before the reader's eyes the time of the day is enough.
 */
function lineOf(session: Session, move: Move, width: number, dated: boolean): string {
  const { paint } = session.out;
  const [day, time] = move.date.toISOString().slice(0, 19).split("T");
  const padding = " ".repeat(width - stringWidth(escapeLine(move.shortName)));
  const cells = [
    move.new === null ? `${paint.bad("deleted")}   ` : paint.id(shortId(move.new)),
    paintRefName(paint, { name: move.ref, shortName: move.shortName }) + padding,
    paint.dim(dated ? `${day} ${time}Z` : `${time}Z`),
    escapeLine(move.actor),
    escapeLine(move.reason),
  ];
  return cells.join("  ").trimEnd();
}
