import type { Claim } from "./claim.js";
import { aboutClaim, type Finder } from "./finder.js";

/** Tells of commits that two spans say they wrote, and of attempts of steps in which two spans say their tool was called. */
export function checkDuplicates(claims: readonly Claim[], finder: Finder): void {
  const written = new Map<string, Claim>();
  /** Spans of steps that recorded an intent. */
  const begun = new Set<string>();
  for (const claim of claims) {
    if (claim.of !== "commit" || claim.success !== true || claim.commit === undefined) continue;
    if (claim.status === "started") begun.add(`${claim.traceId} ${claim.parentSpanId}`);
    const before = written.get(claim.commit);
    if (before === undefined) written.set(claim.commit, claim);
    else {
      finder.problem("duplicate-span", {
        ...aboutClaim(claim),
        detail: `span ${before.spanId} says as well that it wrote this commit`,
        remedy: "a commit is written once: one of the spans was made up",
      });
    }
  }
  const attempts = new Map<string, Claim>();
  for (const claim of claims) {
    const { of, branch, incarnation, seq, attempt } = claim;
    if (of !== "step" || seq === undefined || attempt === undefined) continue;
    // One that was only sealed, by what was found out of it, called nothing.
    const called = claim.success === true || begun.has(`${claim.traceId} ${claim.spanId}`);
    if (!called) continue;
    const id = JSON.stringify([branch, incarnation, seq, attempt]);
    const before = attempts.get(id);
    if (before === undefined) attempts.set(id, claim);
    else {
      finder.problem("duplicate-attempt", {
        ...aboutClaim(claim),
        detail: `attempt ${attempt} of step ${seq} on ${branch ?? "a branch"} was made by span ${before.spanId} as well`,
        remedy:
          "see agstate step show whether the tool's effect happened twice; if not, one of the spans was made up",
      });
    }
  }
}
