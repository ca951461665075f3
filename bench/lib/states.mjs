import { textSource } from "./text.mjs";

/** How much of the state changes with every step. */
const CHANGED_BYTES = 1024;

/** Parts of the larger state that stay as they are: a task, a plan, a profile. */
const KEPT_BYTES = { plan: 1200, profile: 700, task: 1100 };

/**
 * Makes a function that gives the state after each step: 1 KiB in `observation` is new each time.
 *
 * @param kind `small`: that is all there is; `large`: beside it lie 3 KiB that do not change
 */
export function stateSource(kind, seed) {
  const text = textSource(seed);
  const kept = {};
  if (kind === "large") {
    for (const [key, bytes] of Object.entries(KEPT_BYTES)) kept[key] = text(bytes);
  }
  return () => ({ ...kept, observation: text(CHANGED_BYTES) });
}
