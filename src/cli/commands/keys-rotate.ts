import { escapeLine } from "../render/escape.js";
import { type Session, userName } from "../session.js";

interface Options {
  readonly to?: string;
  readonly actor?: string;
}

/** `agstate keys rotate`. */
export async function run(
  session: Session,
  _args: readonly string[],
  { to, actor }: Options,
): Promise<undefined> {
  const { out } = session;
  const workflow = await session.workflow();
  const rotated = await workflow.rotateKey({
    actor: actor ?? userName(),
    ...(to === undefined ? {} : { to }),
  });
  if (out.json) return void (await out.value({ workflow: workflow.id, ...rotated }));
  const shown = ({ keyName, version }: { keyName: string; version: string }) =>
    out.paint.bold(escapeLine(version === "" ? keyName : `${keyName} ${version}`));
  await out.line(`The key of ${escapeLine(workflow.id)} is wrapped by ${shown(rotated.to)},`);
  await out.line(`not by ${shown(rotated.from)} any more. No object changed.`);
}
