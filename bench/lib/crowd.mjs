import { stateSource } from "./states.mjs";

/** The states of the writer of this number: 1 KiB, all of it new each step. */
export const smallStates = (number) => stateSource("small", number);

/**
 * A contestant of `interleave`: writers that each do `steps` steps, all of them at the same time.
 *
 * @param source makes for the writer of a number (from 1) a function that gives what it writes next,
 * before the clock starts
 */
export function crowd(name, writers, steps, source = smallStates) {
  const sources = writers.map((_, k) => source(k + 1));
  return {
    name,
    steps: steps * writers.length,
    async round() {
      const given = sources.map((next) => Array.from({ length: steps }, () => next()));
      const times = [];
      const since = performance.now();
      await Promise.all(
        writers.map(async (write, k) => {
          for (const step of given[k]) {
            const begun = performance.now();
            await write(step);
            times.push(performance.now() - begun);
          }
        }),
      );
      return { times, total: performance.now() - since };
    },
  };
}
