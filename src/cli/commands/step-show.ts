import { stepLines } from "../render/step.js";
import type { Session } from "../session.js";
import { findStep } from "../step-number.js";

/** `agstate step show NUMBER [BRANCH]`. */
export async function run(session: Session, args: readonly string[]): Promise<undefined> {
  const { out } = session;
  const workflow = await session.workflow();
  const branch = await workflow.branch(args[1] ?? "canonical");
  const step = await findStep(branch, args[0] as string);
  if (out.json) return void (await out.value(step));
  for (const line of stepLines(out.paint, step)) await out.line(line);
}
