import { parseAgentRef, shortRefName } from "../../refs/names.js";
import type { Repository } from "../repository.js";
import { AbsentCheck } from "./absent.js";
import { mayBeBelow } from "./ancestry.js";
import { CLOCKS, type Claim, grainOf, lasting } from "./claim.js";
import type { Fact, TracedCommits } from "./commits.js";
import { aboutClaim, type Finder } from "./finder.js";
import type { Landing, Landings } from "./landings.js";

/** The error of a write to which no answer came: whether it landed is not known to whoever wrote. */
const NO_ANSWER = "STORE_UNAVAILABLE";

const CHANGED = "the span was changed, or is another store's: compare it with agstate show";

/** Holds what spans say of single commits against what these are, and where they landed. */
export class ClaimCheck {
  /** By ref: claims of commits that no move led to by itself. */
  readonly #together = new Map<string, { claim: Claim; fact: Fact }[]>();
  readonly #absent: Claim[] = [];

  constructor(
    private readonly repository: Repository,
    private readonly commits: TracedCommits,
    private readonly landings: Landings,
    private readonly finder: Finder,
    private readonly toleranceMs: number,
  ) {}

  async run(claims: readonly Claim[]): Promise<void> {
    const written = new Map<string, Claim>();
    for (const claim of claims) {
      if (claim.of === "commit" && claim.commit !== undefined) written.set(claim.commit, claim);
    }
    for (const claim of claims) {
      const own = written.get(claim.commit ?? "");
      if (claim.success === true) await this.succeeded(claim, own);
      // What a step says of its seal, the seal's own span says as well.
      else if (claim.of === "commit" || own === undefined) this.failed(claim);
    }
    for (const [ref, waiting] of this.#together) await this.landedTogether(ref, waiting);
    const { repository, commits, landings, finder } = this;
    await new AbsentCheck(repository, commits, landings, finder).run(this.#absent);
  }

  /** @param own what the commit's own span says */
  private async succeeded(claim: Claim, own: Claim | undefined): Promise<void> {
    const { commit } = claim;
    if (commit === undefined) {
      // It names none where what somebody else has sealed the step with counts.
      if (claim.of === "step" && !this.commits.isSealed(claim))
        this.unsealed(claim, "no commit seals it");
      return;
    }
    const fact = this.commits.facts.get(commit);
    if (fact === undefined) {
      if (!this.commits.corrupt.has(commit)) this.missing(claim, own);
      return;
    }
    if (claim.of === "merge") return this.merged(claim, fact);
    if (claim.of === "commit") this.trace(claim, fact);
    if (claim.of === "step" && (fact.step?.status ?? "started") === "started") {
      this.unsealed(claim, "the commit that it names does not seal a step");
    } else this.step(claim, fact);
    await this.place(claim, fact);
  }

  /** A merge took its branch to the commit, and the commit has all that was merged below it. */
  private async merged(claim: Claim, fact: Fact): Promise<void> {
    const { branch, sources = [] } = claim;
    const { facts } = this.commits;
    for (const source of sources) {
      const from = facts.get(source);
      // What is not stored any more may have been dropped.
      if (from === undefined || (await mayBeBelow(this.repository, facts, from, fact))) continue;
      this.finder.problem("wrong-merge", {
        ...aboutClaim(claim),
        detail: `its span says that ${source} was merged, and that is not below the commit`,
        remedy: CHANGED,
      });
    }
    if (branch === undefined) return;
    const ref = this.landings.refOf(branch);
    if (ref === undefined || (await this.landings.at(ref, fact.id)).length === 0)
      this.misplaced(claim, `it says that ${branch} was taken there, and no log tells so`);
  }

  private missing(claim: Claim, own: Claim | undefined): void {
    // A memoized read is over while its commit is only gathered, which a kill or a lost race takes.
    const gathered = claim.of === "step" && claim.action === "read" && own?.success !== true;
    if (!gathered) this.#absent.push(claim);
    else this.finder.notice("gathered", claim.workflow, "memoized reads that never landed");
  }

  private failed(claim: Claim): void {
    const { commit, success, error } = claim;
    if (commit === undefined || success === undefined || !this.commits.facts.has(commit)) return;
    if (error === NO_ANSWER) {
      this.finder.notice("lost-answer", claim.workflow, "they landed, and no answer came");
      return;
    }
    this.finder.problem("failure-with-commit", {
      ...aboutClaim(claim),
      detail: `its span says that it did not land${error === undefined ? "" : ` (${error})`}, and it did`,
      remedy: CHANGED,
    });
  }

  private unsealed(claim: Claim, why: string): void {
    const { seq, name } = claim;
    this.finder.problem("success-without-seal", {
      ...aboutClaim(claim),
      detail: `its span says that step ${seq ?? "?"} (${name ?? "?"}) was sealed, and ${why}`,
      remedy: "see agstate step show for what became of the step; the span was changed, or made up",
    });
  }

  private trace(claim: Claim, { trace, hasTrace }: Fact): void {
    const { traceId, spanId, parentSpanId } = claim;
    let detail: string | undefined;
    if (trace === undefined) {
      if (!hasTrace) detail = "the commit says that it was written in no trace";
    } else if (trace.traceId !== traceId) {
      detail = `the commit was written in trace ${trace.traceId}`;
    } else if (trace.spanId === spanId) {
      if (!trace.sampled) detail = "the commit says that this span was not sampled";
    } else if (trace.spanId !== parentSpanId) {
      // A caller's own traceparent is that of the span above.
      detail = `the commit was written in span ${trace.spanId} of this trace`;
    }
    if (detail === undefined) return;
    const remedy = "the span was moved, changed, or made up: it does not tell of this commit";
    this.finder.problem("wrong-trace", { ...aboutClaim(claim), detail, remedy });
  }

  /** What is said of the commit's step, as far as it is said. */
  private step(claim: Claim, { step, record }: Fact): void {
    const pairs: [string, string | number | undefined, string | number | undefined | null][] = [
      ["step.seq", claim.seq, step?.number ?? null],
      ["step.action", claim.action, step?.action ?? null],
      ["step.status", claim.status, step?.status ?? null],
      ["agstate.step.key", claim.key, step?.key],
      ["step.name", claim.name, step === undefined ? null : record?.name],
      ["step.attempt", claim.attempt, record?.attempt],
      ["agstate.run.id", claim.run, record?.place?.run],
    ];
    const wrong = pairs.filter(
      ([, said, is]) => said !== undefined && is !== undefined && said !== is,
    );
    if (wrong.length === 0) return;
    const list = wrong.map(
      ([what, said, is]) => `${what} ${said} where the commit has ${is ?? "none"}`,
    );
    this.finder.problem("wrong-step", {
      ...aboutClaim(claim),
      detail: `it says ${list.join(", ")}`,
      remedy: CHANGED,
    });
  }

  private async place(claim: Claim, fact: Fact): Promise<void> {
    const { branch, agent } = claim;
    if (branch === undefined) return;
    const ref = this.landings.refOf(branch);
    if (ref === undefined) {
      return this.misplaced(claim, `there never was a branch ${branch}`);
    }
    const owner = parseAgentRef(ref)?.agent;
    if (owner !== undefined && agent !== undefined && owner !== agent) {
      return this.misplaced(claim, `it says agent ${agent}, and the branch is ${owner}'s`);
    }
    const landed = await this.landings.at(ref, fact.id);
    if (landed.length > 0) return this.landed(claim, fact, ref, landed);
    const waiting = this.#together.get(ref);
    if (waiting === undefined) this.#together.set(ref, [{ claim, fact }]);
    else waiting.push({ claim, fact });
  }

  private async landedTogether(ref: string, waiting: readonly { claim: Claim; fact: Fact }[]) {
    const ids = new Set<string>(waiting.map(({ fact }) => fact.id));
    const found = await this.landings.within(ref, ids);
    for (const { claim, fact } of waiting) {
      const landing = found.get(fact.id);
      await this.landed(claim, fact, ref, landing === undefined ? [] : [landing]);
    }
  }

  /** @param all moves that led the branch to the commit */
  private async landed(claim: Claim, { id }: Fact, ref: string, all: readonly Landing[]) {
    const { incarnation } = claim;
    const own = all.filter(
      (landing) => incarnation === undefined || landing.incarnation === incarnation,
    );
    if (own.some((landing) => this.outside(claim, landing) <= grainOf(claim))) return;
    // It may have come there later, from where it landed first.
    const elsewhere = own.some(({ appended }) => appended)
      ? undefined
      : (await this.landings.anywhere(id)).find((it) => it.ref !== ref && it.appended);
    const name = shortRefName(ref);
    if (elsewhere !== undefined) {
      this.misplaced(
        claim,
        `it says ${name}, and the commit landed on ${shortRefName(elsewhere.ref)}`,
      );
    } else if (own.length === 0) {
      this.misplaced(
        claim,
        all.length === 0
          ? `it says ${name}, and the log of that has no move that brought the commit`
          : `it says incarnation ${incarnation} of ${name}, and the commit landed on another`,
      );
    } else this.late(claim, own);
  }

  private late(claim: Claim, own: readonly Landing[]): void {
    const by = Math.min(...own.map((landing) => this.outside(claim, landing)));
    if (by <= Math.max(this.toleranceMs, grainOf(claim))) return;
    const { time } = own[0] as Landing;
    this.finder.problem("clock-skew", {
      ...aboutClaim(claim),
      detail: `its span is ${lasting(by)} off the log, by which it landed at ${new Date(time).toISOString()}`,
      remedy: CLOCKS,
    });
  }

  /** By how much a move lies before or after a span, in milliseconds. */
  private outside({ start, end }: Claim, { time }: Landing): number {
    return Math.max(start - time, time - end, 0);
  }

  private misplaced(claim: Claim, detail: string): void {
    this.finder.problem("wrong-branch", { ...aboutClaim(claim), detail, remedy: CHANGED });
  }
}
