import { shortId } from "../render/commit.js";
import { cutTo } from "../render/cut.js";
import { escapeLine } from "../render/escape.js";
import { type Session, userName } from "../session.js";

interface Options {
  readonly reason: string;
  readonly name?: string;
  readonly actor?: string;
}

/** `agstate hold add REV --reason TEXT`. */
export async function run(
  session: Session,
  args: readonly string[],
  { reason, name, actor }: Options,
): Promise<undefined> {
  const { out } = session;
  const workflow = await session.workflow();
  const hold = await workflow.hold(args[0] as string, {
    reason,
    actor: actor ?? userName(),
    ...(name === undefined ? {} : { name }),
  });
  if (out.json) return void (await out.value(hold));
  const { paint } = out;
  const shown = cutTo(escapeLine(hold.name), 50);
  await out.line(`Held ${paint.id(shortId(hold.commit))} as ${paint.bold(shown)}.`);
  await out.line(paint.dim("It stays, with all that it reaches, until the hold is released."));
}
