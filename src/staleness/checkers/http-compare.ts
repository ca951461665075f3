import { parseHttpVersion } from "../../core/http-version.js";
import type { CompareContext, Compared } from "../types.js";
import { DEFAULT_SKEW_MS } from "../verdict.js";

/**
 * Compares two version tokens of HTTP: ETags weakly, as RFC 9110, section 13.1.2, does for If-None-Match; dates exactly.
 *
 * A date that was less than a second old when it was read may stand for two contents, as what is changed again within that
 * second keeps it: when such dates are equal, nothing is known.
 */
export function compareHttpVersions(
  then: string,
  found: string,
  { now, observedAt, skewMs = DEFAULT_SKEW_MS }: CompareContext,
): Compared {
  const before = parseHttpVersion(then, now);
  const after = parseHttpVersion(found, now);
  if (before === null) return { unknown: "the version on record is no ETag and no Last-Modified" };
  if (after === null) return { unknown: "what was found is no ETag and no Last-Modified" };
  if (before.kind === "etag" && after.kind === "etag") {
    return before.opaque === after.opaque ? "same" : "changed";
  }
  if (before.kind !== "last-modified" || after.kind !== "last-modified") {
    return { unknown: `the version on record is by ${before.kind}, and it now has ${after.kind}` };
  }
  if (before.at !== after.at) return "changed";
  const age = observedAt - before.at;
  // Beyond the skew the server's clock is another than ours, and says nothing of the age.
  return age < 1000 && age >= -skewMs
    ? { unknown: "it was read within a second of its Last-Modified, and may have changed since" }
    : "same";
}
