import type { Compared } from "../types.js";

/**
 * Compares versions that are the same only as texts, once the one on record is of the form that its checker writes: what somebody
 * else wrote there says nothing.
 *
 * @param what whose versions they are, such as `of a file`
 */
export function comparesTokens(
  form: RegExp,
  what: string,
): (then: string, now: string) => Compared {
  return (then, now) => {
    if (!form.test(then)) return { unknown: `the version on record is none ${what}` };
    return then === now ? "same" : "changed";
  };
}
