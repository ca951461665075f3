import { AgstateError } from "../../core/errors.js";

/** Nothing is taken away that is not on record. */
export function notRecorded(workflow: string): AgstateError {
  return new AgstateError(
    "REF_CONFLICT",
    `nothing of workflow ${workflow} was taken away: others wrote to the record of retention all the time; try again`,
    { workflow },
  );
}
