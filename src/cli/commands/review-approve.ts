import { AgstateError } from "../../core/errors.js";
import { parseStrictJson } from "../../objects/strict-json.js";
import type { ApproveOptions } from "../../store/reviews/review.js";
import { subjectWords } from "../render/review.js";
import { type Session, userName } from "../session.js";

export interface DecideOptions {
  readonly reason?: string;
  readonly actor?: string;
}

interface Options extends DecideOptions {
  readonly happened?: string | true;
  readonly notHappened?: boolean;
}

/** `agstate review approve ID`: by whoever is named, or the user of this computer. */
export async function run(
  session: Session,
  args: readonly string[],
  options: Options,
): Promise<undefined> {
  const { out } = session;
  const found = foundOut(options);
  const review = await (await session.workflow()).review(args[0] as string);
  const info = await review.approve({ ...decided(options), ...(found ? { found } : {}) });
  if (out.json) return void (await out.value(info));
  if (found === undefined) {
    await out.line(`${out.paint.good("Approved")}: ${subjectWords(info)} may run, once.`);
    const when =
      info.kind === "staleness"
        ? "It goes on when it is resumed, if nothing has moved again by then."
        : "It does when the agent runs again.";
    return void (await out.line(out.paint.dim(when)));
  }
  const what = found.happened ? "is taken to have happened" : "may run again, with the same key";
  await out.line(`${out.paint.good("Noted")}: ${subjectWords(info)}`);
  await out.line(`${what}, when the agent runs again.`);
}

/** Who decides, and why. */
export function decided({ actor, reason }: DecideOptions): { actor: string; reason?: string } {
  return { actor: actor ?? userName(), ...(reason === undefined ? {} : { reason }) };
}

function foundOut({ happened, notHappened }: Options): ApproveOptions["found"] {
  if (notHappened === true) return { happened: false };
  if (happened === undefined) return undefined;
  if (happened === true) return { happened: true };
  try {
    return { happened: true, output: parseStrictJson(happened, "the output") };
  } catch (cause) {
    throw new AgstateError(
      "INVALID_ARGUMENT",
      `--happened takes what came out as JSON, such as '"receipt-7"' or '{"id":7}': ${(cause as Error).message}`,
      {},
      { cause },
    );
  }
}
