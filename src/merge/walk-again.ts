import { isAgstateError } from "../core/errors.js";
import { IdSet } from "../core/id-set.js";
import type { ObjectId } from "../core/ids.js";

/**
 * Goes through a history, and once more, without what is remembered, when a commit is not stored: another process may have
 * dropped history since that was read. What was given is not given again. Only damage stays missing.
 *
 * @param forget drops what is remembered
 * @throws AgstateError `MISSING_OBJECT`, and what the walk throws
 */
export async function* walkAgain<T>(
  walk: () => AsyncIterable<T>,
  idOf: (one: T) => ObjectId,
  forget: () => void,
): AsyncGenerator<T, void, undefined> {
  const given = new IdSet();
  for (let again = false; ; again = true) {
    try {
      for await (const one of walk()) if (given.add(idOf(one))) yield one;
      return;
    } catch (error) {
      if (again || !isAgstateError(error, "MISSING_OBJECT")) throw error;
      forget();
    }
  }
}
