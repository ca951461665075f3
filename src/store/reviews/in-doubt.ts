import type { JsonValue } from "../../core/json.js";
import type { StepQuestion } from "../../steps/journal.js";
import type { Probed } from "../../steps/spec.js";
import type { Repository } from "../repository.js";
import type { StepBranch } from "../steps/handle.js";
import { BranchDesk } from "./desk.js";

/**
 * What a person found out of a step that was begun and not sealed; else the review that asks.
 *
 * What was found out holds for the attempt that it was asked of: when the step is tried again and
 * dies again, it is asked anew.
 */
export async function askWhatBecame(
  repository: Repository,
  branch: StepBranch,
  { number, key, attempt, name, action, input, place }: StepQuestion,
): Promise<Probed<JsonValue | undefined> | { readonly review: string }> {
  const desk = new BranchDesk(repository, branch);
  const { id, status, record } = await desk.ask(
    {
      kind: "in-doubt",
      subject: {
        number,
        place: place ?? null,
        name,
        action,
        ...(input === undefined ? {} : { input }),
        key,
        attempt,
      },
      paths: [],
      reason: "begun and not sealed: did its effect happen?",
    },
    () => false,
  );
  const found = status === "approved" ? record.decision?.found : undefined;
  if (found === undefined) return { review: id };
  return found.happened ? { happened: true, output: found.output } : { happened: false };
}
