import type { StepExecution } from "./execute.js";
import type { Begun, Journal } from "./journal.js";
import type { StepSpec, Tool } from "./spec.js";
import { inDoubt } from "./step-error.js";

/**
 * Goes on with a step that was begun and not sealed.
 *
 * @throws AgstateError `STEP_IN_DOUBT`
 */
export async function resumeStep<Output>(
  execution: StepExecution<Output>,
  journal: Journal,
  spec: StepSpec<Output>,
  tool: Tool<Output>,
  begun: Begun,
): Promise<Output> {
  const policy = spec.inDoubt ?? "fail";
  // What ended a run has used up all its attempts, and has as many again when it is tried again.
  const made = 1 + ((begun.attempt - 1) % (1 + (spec.retry?.attempts ?? 0)));
  if (policy === "retry") return execution.run(tool, begun, made);
  if (policy === "fail") throw inDoubt(journal, spec.name, begun);
  const probed =
    policy === "ask"
      ? await journal.ask(execution.question(begun))
      : await policy({ ...begun, input: execution.input });
  if (probed === "unknown") throw inDoubt(journal, spec.name, begun);
  if ("review" in probed) throw inDoubt(journal, spec.name, begun, probed);
  if (!probed.happened) return execution.run(tool, begun, made);
  return execution.seal(probed.output as Output, begun.number, begun.attempt);
}
