import { AgstateError } from "../../core/errors.js";
import { quoteForMessage } from "../../core/names.js";
import type { ForeignPayload } from "./guard.js";

/** How messages and logs name at most so much of a path. */
const WHERE_MAX_UNITS = 200;

/**
 * The error of a write that holds a copy of a payload of another region. It says where, and nothing of what stands there.
 *
 * @param where as `textsOfBatch` has it
 * @param by who writes, if the name is none of the copies
 */
export function copyRefused(
  where: string,
  owner: ForeignPayload,
  into: string,
  by: string | null,
): AgstateError {
  const place = where.length > WHERE_MAX_UNITS ? `${where.slice(0, WHERE_MAX_UNITS)}...` : where;
  const { region, hash } = owner;
  return new AgstateError(
    "RESIDENCY_REFUSED",
    `${place.startsWith("/") ? `the value at ${quoteForMessage(place)}` : place} holds a copy of a payload that belongs to region ${region}, and would go to ${into}; leave it out, or declare that it belongs to ${region}`,
    { where: place, region, into, payload: hash, by },
  );
}
