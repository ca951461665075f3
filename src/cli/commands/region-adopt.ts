import { escapeLine } from "../render/escape.js";
import type { Session } from "../session.js";

/** `agstate region adopt WORKFLOW REGION`. */
export async function run(session: Session, args: readonly string[]): Promise<undefined> {
  const [id, name] = args as [string, string];
  const placement = await (await session.namedRegions()).adopt(id, name);
  const { out } = session;
  if (out.json) return void (await out.value(placement));
  await out.line(
    `Workflow ${escapeLine(id)} is in the catalogue, in region ${placement.region} as ${placement.classification}.`,
  );
}
