import type { StepAction } from "../../objects/commit.js";
import { type Isolation, isolationBelow, isolationOfKey } from "../../objects/isolation.js";
import type { ReviewRecord } from "../../reviews/record.js";
import type { Repository } from "../repository.js";

/**
 * How a review's record is kept: what of a step's input and output the workflow isolates in step records
 * is an object of its own here, too, and the very same one, so that whoever erases it misses nothing.
 */
export function reviewIsolation(
  repository: Repository,
  { subject: { action, name, input: given }, decision: decided }: ReviewRecord,
): Isolation | null {
  const { found } = decided ?? {};
  const gave = found?.happened === true ? found.output : undefined;
  const stepPolicy = repository.policyOfStep(action as StepAction, {
    name,
    ...(given !== undefined && { input: given }),
    ...(gave !== undefined && { output: gave }),
  });
  const input = isolationBelow("input", isolationOfKey(stepPolicy, "input"));
  const output = isolationBelow("output", isolationOfKey(stepPolicy, "output"));
  const subject = isolationBelow("subject", input);
  const decision = isolationBelow("decision", isolationBelow("found", output));
  if (subject === null || decision === null) return subject ?? decision;
  return { ...subject, keys: new Map([...subject.keys, ...decision.keys]) };
}
