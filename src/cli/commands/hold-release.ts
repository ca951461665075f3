import { shortId } from "../render/commit.js";
import { cutTo } from "../render/cut.js";
import { escapeLine } from "../render/escape.js";
import { plural } from "../render/sizes.js";
import { type Session, userName } from "../session.js";

/** `agstate hold release NAME --reason TEXT`: also says how many others hold the same commit. */
export async function run(
  session: Session,
  args: readonly string[],
  options: { readonly reason: string; readonly actor?: string },
): Promise<undefined> {
  const { out } = session;
  const { paint } = out;
  const workflow = await session.workflow();
  const { reason, actor = userName() } = options;
  const hold = await workflow.releaseHold(args[0] as string, { reason, actor });
  const others = (await workflow.holds()).filter(({ commit }) => commit === hold.commit).length;
  if (out.json) return void (await out.value({ ...hold, others }));
  const id = paint.id(shortId(hold.commit));
  await out.line(`Released ${paint.bold(cutTo(escapeLine(hold.name), 50))}.`);
  await out.line(
    others === 0 ? `${id} has no hold any more.` : `${id} still has ${plural(others, "hold")}.`,
  );
}
