import type { ObjectId } from "../core/ids.js";
import { walkAgain } from "../merge/walk-again.js";
import type { Repository } from "./repository.js";

/** {@link walkAgain}, where the walk reads commits as well. */
export function readAgain<T>(
  { context, history }: Repository,
  walk: () => AsyncIterable<T>,
  idOf: (one: T) => ObjectId,
): AsyncGenerator<T, void, undefined> {
  return walkAgain(walk, idOf, () => {
    context.commitCache.clear();
    history.forget();
  });
}
