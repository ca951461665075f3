import { AgstateError } from "../../core/errors.js";
import { quoteForMessage } from "../../core/names.js";
import type { WorkflowInfo } from "../../store/types.js";
import type { Placement } from "../placement.js";

export function reservedId(id: string): AgstateError {
  return new AgstateError(
    "INVALID_NAME",
    `workflow id ${quoteForMessage(id)} is the catalogue's own; choose another id`,
    { field: "workflow id", name: id },
  );
}

/** No region is asked for it: that would tell its id to those that it has nothing to do with. */
export function notPlaced(id: string): AgstateError {
  return new AgstateError(
    "WORKFLOW_NOT_FOUND",
    `there is no workflow ${quoteForMessage(id)} in the catalogue of regions; create it, or, if a region's store has it, enter it with agstate region adopt ID REGION`,
    { workflow: id },
  );
}

/** A workflow is in a region's store that the router is to create one in. */
export function existsInRegion(id: string, region: string, placed: boolean): AgstateError {
  const name = quoteForMessage(id);
  if (placed) {
    return new AgstateError(
      "WORKFLOW_EXISTS",
      `workflow ${name} exists already, in region ${region}; open it, or choose another id`,
      { workflow: id, region },
    );
  }
  return new AgstateError(
    "REGION_REFUSED",
    `the store of region ${region} has a workflow ${name} that the catalogue does not know; enter it with agstate region adopt ID ${region}, or choose another id`,
    { workflow: id, region },
  );
}

export function placedElsewhere(
  placed: Placement,
  wanted: Pick<Placement, "region" | "classification">,
): AgstateError {
  const { workflow, region, classification } = placed;
  const details = { workflow, region, classification, wanted };
  const name = quoteForMessage(workflow);
  if (region !== wanted.region) {
    return new AgstateError(
      "WORKFLOW_EXISTS",
      `workflow ${name} belongs to region ${region} for life, not to ${wanted.region}; open it there, or choose another id`,
      details,
    );
  }
  return new AgstateError(
    "REGION_REFUSED",
    `workflow ${name} was placed in region ${region} as ${classification}, not as ${wanted.classification}; declare it as it was, or choose another id`,
    details,
  );
}

/** What a crash between the place and the workflow left, or what somebody is about to create. */
export function unfinished({ workflow, region, classification }: Placement): AgstateError {
  return new AgstateError(
    "WORKFLOW_NOT_FOUND",
    `workflow ${quoteForMessage(workflow)} has its place in region ${region}, and was not created there; create it again in ${region}, as ${classification}`,
    { workflow, region, classification, unfinished: true },
  );
}

export function unlikeCatalogue(placement: Placement, info: WorkflowInfo): AgstateError {
  const { workflow, region, classification } = placement;
  const says = `${info.classification}, of ${info.storageRegion === null ? "no region" : `region ${quoteForMessage(info.storageRegion)}`}`;
  return new AgstateError(
    "REGION_REFUSED",
    `workflow ${quoteForMessage(workflow)} is ${says} by its own declaration, and would be ${classification}, of region ${region}; it is not served before they agree: restore its store or the catalogue`,
    {
      workflow,
      region,
      classification,
      declared: { region: info.storageRegion, classification: info.classification },
    },
  );
}
