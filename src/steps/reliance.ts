import { AgstateError } from "../core/errors.js";
import type { Reliance } from "./record.js";

/** On how many resources one step may rely. */
const RELIANCES_MAX = 1000;

/**
 * What a step relies on, with one more; what it has read before in the same version counts once.
 *
 * @throws AgstateError `LIMIT_EXCEEDED`
 */
export function withReliance(known: readonly Reliance[], more: Reliance): readonly Reliance[] {
  const { type, id, version } = more;
  if (known.some((one) => one.type === type && one.id === id && one.version === version)) {
    return known;
  }
  if (known.length >= RELIANCES_MAX) {
    throw new AgstateError(
      "LIMIT_EXCEEDED",
      `a step relies on more than ${RELIANCES_MAX} resources; split it, or rely on what stands for many of them, such as a Git ref`,
      { limit: RELIANCES_MAX },
    );
  }
  return [...known, more];
}
