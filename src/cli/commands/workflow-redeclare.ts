import { AgstateError } from "../../core/errors.js";
import type { Classification } from "../../store/types.js";
import { escapeLine } from "../render/escape.js";
import type { Session } from "../session.js";

interface Options {
  readonly classification?: string;
  readonly retention?: string;
  readonly reason: string;
  readonly by?: string;
  readonly lower?: boolean;
}

/** `agstate workflow redeclare WORKFLOW`. */
export async function run(
  session: Session,
  args: readonly string[],
  { classification, retention, reason, by, lower = false }: Options,
): Promise<undefined> {
  const id = args[0] as string;
  if (classification === undefined && retention === undefined) {
    throw new AgstateError(
      "INVALID_ARGUMENT",
      "nothing is to be changed; give --classification, --retention, or both",
      {},
    );
  }
  const change = {
    ...(classification !== undefined && { classification: classification as Classification }),
    ...(retention !== undefined && { retentionPolicy: retention === "none" ? null : retention }),
  };
  const options = { reason, lower, ...(by !== undefined && { by }) };
  const regions = await session.regions();
  const info =
    regions === undefined
      ? await (await (await session.store()).workflow(id)).redeclare(change, options)
      : await regions.redeclare(id, change, options);
  const { out } = session;
  if (out.json) return void (await out.value(info));
  const kept = info.retentionPolicy === null ? "no retention" : `retention ${info.retentionPolicy}`;
  await out.line(`Workflow ${escapeLine(id)} is ${info.classification} now, with ${kept}.`);
  await out.line("Processes that have it open see that when they open it again.");
}
