import type { Claim } from "./claim.js";
import type { TraceNotice, TraceProblem } from "./types.js";

type About = Pick<TraceProblem, "workflow" | "detail" | "remedy"> & Partial<TraceProblem>;

/** Takes down what is found. */
export class Finder {
  readonly problems: TraceProblem[] = [];
  readonly #notices = new Map<string, TraceNotice>();

  get notices(): readonly TraceNotice[] {
    return [...this.#notices.values()];
  }

  problem(kind: TraceProblem["kind"], about: About): void {
    const { workflow, commit = null, traceId = null, spanId = null, detail, remedy } = about;
    this.problems.push({ kind, workflow, commit, traceId, spanId, detail, remedy });
  }

  /** Counts one of a kind. */
  notice(kind: TraceNotice["kind"], workflow: string, detail: string): void {
    const id = `${kind} ${workflow}`;
    const count = (this.#notices.get(id)?.count ?? 0) + 1;
    this.#notices.set(id, { kind, workflow, count, detail });
  }
}

/** What a finding about a claim's commit names. */
export function aboutClaim({ workflow, commit, traceId, spanId }: Claim) {
  return { workflow, commit: commit ?? null, traceId, spanId };
}
