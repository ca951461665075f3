import type { ObjectReader } from "../objects/reader.js";
import type { Claim, ConflictKind, Contest, Settlement } from "./contest.js";
import { type Frame, isBaseKnown } from "./frame.js";
import { lookUp } from "./look-up.js";
import { PathMarks } from "./path-marks.js";
import { kindsOf, type MaybeSide, same } from "./side.js";

/** What is merged, and the base that it is merged by. */
export interface Source {
  readonly base: MaybeSide;
  readonly unknown: PathMarks<true> | undefined;
  readonly theirs: MaybeSide;
}

/** The contests of a merge, and what the sources that it took so far want at contested paths. */
export class Contests {
  readonly marks = new PathMarks<Contest>();
  private readonly sources: Source[] = [];

  /** @param settlements what contested paths are to hold, as far as that is settled */
  constructor(
    private readonly reader: ObjectReader,
    private readonly settlements: PathMarks<Settlement> | undefined,
  ) {}

  /** Takes the next source: claims are its own from now on. */
  begin(source: Source): void {
    this.sources.push(source);
  }

  /** Opens a contest at a path; answers what it was settled to, when it was. */
  async open(frame: Frame): Promise<Settlement | undefined> {
    const claim = await this.claimOf(this.sources.length - 1, frame, frame.ours);
    return this.set({ path: frame.path, ours: frame.ours, claims: [claim] });
  }

  /** Lets a further source join a contest, when it brings anything new. */
  async join(contest: Contest, frame: Frame): Promise<void> {
    if (same(contest.ours, frame.theirs)) return;
    const claim = await this.claimOf(this.sources.length - 1, frame, contest.ours);
    this.marks.set(contest.path, { ...contest, claims: [...contest.claims, claim] });
  }

  /**
   * Makes one contest of all below a path, where a source replaces or removes
   * the whole of it: the parts cannot be settled one by one any more.
   */
  async lift(frame: Frame): Promise<Settlement | undefined> {
    const { reader } = this;
    const current = this.sources.length - 1;
    const below = this.marks.node(frame.path);
    const earlier = new Set<number>();
    for (const [, contest] of below?.entries() ?? []) {
      for (const { source } of contest.claims) if (source !== current) earlier.add(source);
    }
    const claims: Claim[] = [];
    for (const source of [...earlier].sort((a, b) => a - b)) {
      const { base, unknown, theirs } = this.sources[source] as Source;
      const place = {
        base: await lookUp(reader, base, frame.path),
        unknown: unknown?.node(frame.path),
        theirs: await lookUp(reader, theirs, frame.path),
      };
      claims.push(await this.claimOf(source, place, frame.ours));
    }
    claims.push(await this.claimOf(current, frame, frame.ours));
    below?.clearBelow();
    return this.set({ path: frame.path, ours: frame.ours, claims });
  }

  private set(contest: Contest): Settlement | undefined {
    this.marks.set(contest.path, contest);
    return this.settlements?.at(contest.path);
  }

  private async claimOf(
    source: number,
    frame: Pick<Frame, "base" | "theirs" | "unknown">,
    ours: MaybeSide,
  ): Promise<Claim> {
    const { theirs } = frame;
    const baseKnown = isBaseKnown(frame);
    const base = baseKnown ? frame.base : undefined;
    const kind = await this.kindOf(base, baseKnown, ours, theirs);
    return { source, kind, base, baseKnown, theirs };
  }

  private async kindOf(
    base: MaybeSide,
    baseKnown: boolean,
    ours: MaybeSide,
    theirs: MaybeSide,
  ): Promise<ConflictKind> {
    if (ours === undefined || theirs === undefined) return "edit/delete";
    if (base === undefined && baseKnown) return "add/add";
    const [o, t, b] = await kindsOf(this.reader, ours, theirs, base);
    if (o !== t) return "type";
    return o === "list" && b === "list" ? "list" : "edit/edit";
  }
}
