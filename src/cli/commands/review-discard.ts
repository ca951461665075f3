import { subjectWords } from "../render/review.js";
import type { Session } from "../session.js";
import { type DecideOptions, decided } from "./review-approve.js";

/** `agstate review discard ID`. */
export async function run(
  session: Session,
  args: readonly string[],
  options: DecideOptions,
): Promise<undefined> {
  const { out } = session;
  const review = await (await session.workflow()).review(args[0] as string);
  const info = await review.discard(decided(options));
  if (out.json) return void (await out.value(info));
  const what = info.kind === "in-doubt" ? "stays in doubt" : "may not run as it was asked for";
  await out.line(`${out.paint.bad("Discarded")}: ${subjectWords(info)}`);
  await out.line(`${what}.`);
}
