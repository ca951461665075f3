import { AgstateError } from "../../core/errors.js";
import { parseStrictJson } from "../../objects/strict-json.js";
import { escapeLine } from "../render/escape.js";
import { statusText } from "../render/step.js";
import type { Session } from "../session.js";
import { findStep, stepNumber } from "../step-number.js";

/** `agstate step seal NUMBER [BRANCH]`: says what became of a step that was begun and not sealed. */
export async function run(
  session: Session,
  args: readonly string[],
  options: { readonly output?: string; readonly error?: string; readonly author?: string },
): Promise<undefined> {
  const { out } = session;
  if ((options.output === undefined) === (options.error === undefined)) {
    throw new AgstateError(
      "INVALID_ARGUMENT",
      "say what became of the step: --output JSON when it was done, or --error TEXT when it failed",
    );
  }
  const workflow = await session.workflow();
  const branch = await workflow.branch(args[1] ?? "canonical");
  const number = stepNumber(args[0] as string);
  await branch.sealStep(
    number,
    options.output === undefined
      ? { error: { name: "Error", message: options.error as string } }
      : { output: parseStrictJson(Buffer.from(options.output), "--output") },
    options.author === undefined ? {} : { author: options.author },
  );
  const step = await findStep(branch, String(number));
  if (out.json) return void (await out.value(step));
  await out.line(
    `Step ${number} (${escapeLine(step.name)}) of ${escapeLine(branch.name)}: ${statusText(out.paint, step.status)}`,
  );
}
