import type { SpanBook } from "./book.js";
import type { Claim } from "./claim.js";
import type { TracedCommits } from "./commits.js";
import type { Finder } from "./finder.js";

/**
 * Tells of commits that lack their span: those whose trace was sampled and is among the spans.
 *
 * A collector that samples by tail drops what succeeds, and keeps a trace from where something fails. So in a trace with a failure
 * commits below all whose spans are there owe none.
 */
export function checkOwed(
  workflow: string,
  claims: readonly Claim[],
  { facts, unnamed }: TracedCommits,
  book: SpanBook,
  finder: Finder,
): void {
  const written = new Set<string>();
  /** By trace: the generation from which on its commits' spans were kept. */
  const kept = new Map<string, number>();
  for (const { of, commit, traceId } of claims) {
    if (of !== "commit" || commit === undefined) continue;
    written.add(commit);
    const generation = facts.get(commit)?.generation ?? Number.POSITIVE_INFINITY;
    kept.set(traceId, Math.min(generation, kept.get(traceId) ?? Number.POSITIVE_INFINITY));
  }
  for (const { id, trace, generation } of [...facts.values(), ...unnamed]) {
    if (trace?.sampled !== true || !book.traces.has(trace.traceId) || written.has(id)) continue;
    const { traceId, spanId } = trace;
    const from = kept.get(traceId) ?? Number.POSITIVE_INFINITY;
    if (book.failed.has(traceId) && generation < from) {
      finder.notice("kept-in-part", workflow, "came before what was kept of their traces");
      continue;
    }
    finder.problem("commit-without-span", {
      workflow,
      commit: id,
      traceId,
      spanId,
      detail: "its trace was sampled and is among the spans, and none of them tells of this commit",
      remedy:
        "export the trace again, whole and some seconds after the commit; else the span was lost on its way, or taken out",
    });
  }
}
