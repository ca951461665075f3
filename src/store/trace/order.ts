import type { Repository } from "../repository.js";
import { mayBeBelow } from "./ancestry.js";
import type { SpanBook } from "./book.js";
import { type Claim, grainOf, lasting } from "./claim.js";
import type { Fact, TracedCommits } from "./commits.js";
import { aboutClaim, type Finder } from "./finder.js";

const CHANGED = "the span's times or its base were changed, or a clock was set while it ran";

/**
 * Holds the order that spans tell against the DAG: what a step began at is below its seal, and had landed; and no commit
 * landed before what it stands on.
 *
 * Steps that ran beside each other began at the same commit, so that they are no matter here. Commits of memoized reads and
 * plain updates may be gathered: of these it is only known that they were made before what goes on from them.
 */
export class OrderCheck {
  /** By commit: who says to have written it. */
  readonly #written = new Map<string, Claim>();

  constructor(
    private readonly repository: Repository,
    private readonly commits: TracedCommits,
    private readonly book: SpanBook,
    private readonly finder: Finder,
    private readonly toleranceMs: number,
  ) {}

  async run(claims: readonly Claim[]): Promise<void> {
    for (const claim of claims) {
      if (claim.of === "commit" && claim.success === true && claim.commit !== undefined)
        this.#written.set(claim.commit, claim);
    }
    for (const claim of claims) {
      const fact = this.commits.facts.get(claim.commit ?? "");
      if (claim.success !== true || fact === undefined) continue;
      if (claim.of === "step") await this.step(claim, fact);
      if (claim.of === "commit") this.commit(claim, fact);
    }
  }

  private async step(claim: Claim, seal: Fact): Promise<void> {
    const { base } = claim;
    const from = this.commits.facts.get(base ?? "");
    if (base === undefined || from === undefined) return;
    const before = this.#written.get(base);
    const early = before === undefined ? 0 : landedAt(before, from) - claim.start;
    if (before !== undefined && early > this.allowance(before, claim))
      this.tell(claim, `it began ${lasting(early)} before ${base}, which it goes on from, landed`);
    const { facts } = this.commits;
    if (from.id === seal.id || !(await mayBeBelow(this.repository, facts, from, seal)))
      this.tell(claim, `it says that it began at ${base}, and its seal does not stand on that`);
  }

  private commit(claim: Claim, { parents }: Fact): void {
    for (const parent of parents) {
      const before = this.#written.get(parent);
      if (before === undefined) continue;
      // Of two writers the one that comes first may get its answer last.
      const together = this.book.shareWork(before, claim) && before.branch === claim.branch;
      const early = (together ? before.end : before.start) - claim.end;
      if (early > this.allowance(before, claim))
        this.tell(claim, `it landed ${lasting(early)} before ${parent}, which it stands on`);
    }
  }

  /** By how much the times of two spans may differ: within one piece of work there is but one clock. */
  private allowance(a: Claim, b: Claim): number {
    const grain = grainOf(a, b);
    return this.book.shareWork(a, b) ? grain : Math.max(this.toleranceMs, grain);
  }

  private tell(claim: Claim, detail: string): void {
    this.finder.problem("out-of-order", { ...aboutClaim(claim), detail, remedy: CHANGED });
  }
}

/** When a commit was surely there for what goes on from it. */
function landedAt({ start, end }: Claim, { step }: Fact): number {
  return step === undefined || step.action === "read" ? start : end;
}
