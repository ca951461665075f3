import type { StepHooks } from "../../core/step-hooks.js";
import { gate } from "../../governance/gate.js";
import type { Repository } from "../repository.js";
import type { StepBranch } from "../steps/handle.js";
import { BranchDesk } from "./desk.js";

/** What takes part in the steps of a branch: the rules first, so that nobody else is told of what they refuse. */
export function hooksOn(repository: Repository, branch: StepBranch): readonly StepHooks[] {
  const { hooks, governance } = repository.context;
  if (governance === undefined) return hooks;
  const nextNumber = () => branch.minStep;
  return [gate(governance, new BranchDesk(repository, branch), nextNumber), ...hooks];
}
