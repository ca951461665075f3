import { columns } from "../render/columns.js";
import { formatDate, shortId } from "../render/commit.js";
import { cutTo, WIDTH } from "../render/cut.js";
import { escapeLine } from "../render/escape.js";
import type { Session } from "../session.js";

/** `agstate hold`: what is held, by whom, since when, and below it why. */
export async function run(session: Session): Promise<undefined> {
  const { out } = session;
  const { paint } = out;
  const holds = await (await session.workflow()).holds();
  if (out.json) {
    for (const hold of holds) await out.value(hold);
    return;
  }
  if (holds.length === 0) return void (await out.line("Nothing is held."));
  const rows = holds.map(({ name, commit, by, at }) => [
    paint.bold(cutTo(escapeLine(name), 24)),
    paint.id(shortId(commit)),
    cutTo(escapeLine(by), 16),
    formatDate(at),
  ]);
  for (const [i, line] of columns(rows).entries()) {
    await out.line(line);
    await out.line(paint.dim(`  ${cutTo(escapeLine(holds[i]?.reason ?? ""), WIDTH - 2)}`));
  }
}
