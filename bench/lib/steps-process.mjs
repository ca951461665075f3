import { contestantProcess } from "./contestant-process.mjs";

const CHILD = new URL("./steps-child.mjs", import.meta.url);

/**
 * A contestant that runs workflows in a process of its own.
 *
 * @param what whether it is the `peer`, `workflows`, `steps` of a workflow, and `options` of the contestant
 */
export function stepsProcess(name, what) {
  return contestantProcess(CHILD, name, what.workflows * what.steps, what);
}
