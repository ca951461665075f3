import { stateSource } from "./states.mjs";

/**
 * A contestant of `interleave`: writers that each do `steps` steps, all of them at the same time.
 *
 * @param prepare makes of a new state what a writer takes, before the clock starts
 */
export function crowd(name, writers, steps, prepare = (state) => state) {
  const sources = writers.map((_, k) => stateSource("small", k + 1));
  return {
    name,
    steps: steps * writers.length,
    async round() {
      const given = sources.map((states) => Array.from({ length: steps }, () => prepare(states())));
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
