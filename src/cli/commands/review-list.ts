import { columns } from "../render/columns.js";
import { cutTo } from "../render/cut.js";
import { escapeLine } from "../render/escape.js";
import { statusWords } from "../render/review.js";
import type { Session } from "../session.js";

interface Options {
  readonly all?: boolean;
  readonly kind?: string;
  readonly branch?: string;
}

/** `agstate review`: what waits for a decision. */
export async function run(
  session: Session,
  _args: readonly string[],
  { all, kind, branch }: Options,
): Promise<undefined> {
  const { out } = session;
  const { paint } = out;
  const workflow = await session.workflow();
  const reviews = await workflow.reviews({
    // Nobody decides on what a rule has denied, so that asking for those is asking for all of them.
    ...(all === true || kind === "denial" ? {} : { open: true }),
    ...(kind === undefined ? {} : { kind }),
    ...(branch === undefined ? {} : { branch }),
  });
  const infos = reviews.map(({ info }) => info);
  if (out.json) {
    for (const info of infos) await out.value(info);
    return;
  }
  const rows = infos.map((info) => [
    paint.id(escapeLine(info.id)),
    statusWords(paint, info),
    cutTo(escapeLine(info.subject.name), 18),
    paint.ref(cutTo(escapeLine(info.subject.branch), 20)),
  ]);
  for (const line of columns(rows)) await out.line(line);
  if (rows.length === 0) {
    return void (await out.line(
      all === true ? "Nobody has asked for a decision." : "Nothing waits for a decision.",
    ));
  }
  if (!infos.some(({ status }) => status === "open")) return;
  await out.line();
  await out.line(
    paint.dim("agstate review show ID tells what is asked; approve ID or discard ID decides."),
  );
}
