import { isAgstateError } from "../core/errors.js";
import type { Repository } from "./repository.js";

/**
 * Goes through a history, and once more, without what is remembered, when a commit is not stored: another process may have
 * dropped history since. What was given is not given again. Only damage stays missing.
 *
 * @throws AgstateError `MISSING_OBJECT`, and what the walk throws
 */
export async function* walkAgain<T>(
  { context, history }: Repository,
  walk: () => AsyncIterable<T>,
  idOf: (one: T) => string,
): AsyncGenerator<T, void, undefined> {
  const given = new Set<string>();
  for (let again = false; ; again = true) {
    try {
      for await (const one of walk()) {
        if (given.has(idOf(one))) continue;
        given.add(idOf(one));
        yield one;
      }
      return;
    } catch (error) {
      if (again || !isAgstateError(error, "MISSING_OBJECT")) throw error;
      context.commitCache.clear();
      history.forget();
    }
  }
}
