import { AgstateError } from "../core/errors.js";
import { quoteForMessage } from "../core/names.js";
import type { Branch } from "../store/branch.js";
import type { StepDetails } from "../store/steps/list.js";

/** @throws AgstateError `INVALID_ARGUMENT` */
export function stepNumber(text: string): number {
  const number = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(number) && number > 0) return number;
  throw new AgstateError(
    "INVALID_ARGUMENT",
    `${quoteForMessage(text)} is no step number; agstate steps lists them`,
    { step: text },
  );
}

/** @throws AgstateError `INVALID_ARGUMENT`, `STEP_NOT_FOUND` */
export async function findStep(branch: Branch, text: string): Promise<StepDetails> {
  const number = stepNumber(text);
  for await (const step of branch.steps()) if (step.number === number) return step;
  throw new AgstateError(
    "STEP_NOT_FOUND",
    `${branch.name} has no step ${number} on record; agstate steps ${branch.name} lists them`,
    { branch: branch.name, step: number },
  );
}
