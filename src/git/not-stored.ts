import { AgstateError } from "../core/errors.js";
import type { ObjectId } from "../core/ids.js";

/** The error of an export that an object is missing for. */
export function notStored(id: ObjectId): AgstateError {
  return new AgstateError("MISSING_OBJECT", `object ${id} is not in the store; run agstate fsck`, {
    id,
  });
}
