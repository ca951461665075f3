import { isObjectId } from "../../core/ids.js";
import type { Repository } from "../repository.js";
import { recordedDrops } from "../retention/records.js";
import { type Claim, grainOf } from "./claim.js";
import type { TracedCommits } from "./commits.js";
import { aboutClaim, type Finder } from "./finder.js";
import type { Landings } from "./landings.js";

/**
 * Judges claims of commits that are not stored: retention drops them, as is on record; collection removes what nothing reaches
 * any more, of which the logs still tell that it landed; anything else was never there, or was taken away.
 */
export class AbsentCheck {
  constructor(
    private readonly repository: Repository,
    private readonly commits: TracedCommits,
    private readonly landings: Landings,
    private readonly finder: Finder,
  ) {}

  async run(claims: readonly Claim[]): Promise<void> {
    /** By commit: a step's seal is named by two spans, of which its own tells most. */
    const absent = new Map<string, Claim>();
    for (const claim of claims) {
      const { commit = "" } = claim;
      if (!absent.has(commit) || claim.of === "commit") absent.set(commit, claim);
    }
    if (absent.size === 0) return;
    const dropped = await recordedDrops(this.repository, new Set(absent.keys()));
    /** Those that no log names, by ref. */
    const unnamed = new Map<string, Claim[]>();
    for (const [commit, claim] of absent) {
      const needed = this.commits.needed.get(commit);
      if (needed !== undefined) this.takenOut(claim, needed);
      else if (dropped.has(commit)) {
        this.finder.notice("dropped", claim.workflow, "by retention, as its records tell");
      } else if (await this.isNamed(claim, commit)) this.collected(claim);
      else {
        const ref = this.landings.refOf(claim.branch ?? "") ?? "";
        const others = unnamed.get(ref);
        if (others === undefined) unnamed.set(ref, [claim]);
        else others.push(claim);
      }
    }
    for (const [ref, some] of unnamed) await this.landedTogether(ref, some);
  }

  /** Whether a log tells that it landed. */
  private async isNamed({ branch }: Claim, commit: string): Promise<boolean> {
    if (!isObjectId(commit)) return false;
    const ref = this.landings.refOf(branch ?? "");
    if (ref === undefined) return (await this.landings.anywhere(commit)).length > 0;
    return (await this.landings.at(ref, commit)).length > 0;
  }

  /**
   * Of commits that landed together the log names the last: one that landed so is gone with it. What retention drops is on
   * record one by one, so of that nothing follows for others.
   */
  private async landedTogether(ref: string, claims: readonly Claim[]): Promise<void> {
    const all = await this.landings.gone(ref);
    const dropped = await recordedDrops(this.repository, new Set(all.map(({ commit }) => commit)));
    const gone = all.filter(({ commit }) => !dropped.has(commit));
    for (const claim of claims) {
      const { start, end, incarnation, commit = "" } = claim;
      const grain = grainOf(claim);
      const isWith = gone.some(
        (move) =>
          move.time >= start - grain &&
          move.time <= end + grain &&
          (incarnation === undefined || move.incarnation === incarnation),
      );
      if (isWith && isObjectId(commit)) this.collected(claim);
      else this.neverThere(claim);
    }
  }

  private collected({ workflow }: Claim): void {
    this.finder.notice("collected", workflow, "as nothing reached them any more");
  }

  private takenOut(claim: Claim, needed: string): void {
    this.finder.problem("success-without-commit", {
      ...aboutClaim(claim),
      detail: `its span says that it landed, and it is gone, though ${needed} stands on it`,
      remedy: "it was taken out of the store: run agstate fsck, and restore it from a backup",
    });
  }

  private neverThere(claim: Claim): void {
    this.finder.problem("success-without-commit", {
      ...aboutClaim(claim),
      detail: "its span says that it landed, and neither the store nor any log has it",
      remedy:
        "see whether this is the store that was written to, and was not put back to an older state; else the span was made up",
    });
  }
}
