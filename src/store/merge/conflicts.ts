import type { JsonValue } from "../../core/json.js";
import { formatPointer, parseIndex } from "../../core/json-pointer.js";
import { lastWriters } from "../../merge/blame.js";
import { indexOfToken } from "../../merge/by-id.js";
import type { Claim, Contest } from "../../merge/contest.js";
import { openList } from "../../merge/list-tail.js";
import { lookUp } from "../../merge/look-up.js";
import { type MergeOutcome, mergedPart, type PartContest } from "../../merge/merge-commits.js";
import { identity, kindOf, type MaybeSide, readValue, same, sideOf } from "../../merge/side.js";
import type { LoadedCommit } from "../../objects/commit-reader.js";
import type { Repository } from "../repository.js";
import type { Commit } from "../types.js";
import { toCommit } from "../views.js";
import type { NamedCommit } from "./request.js";
import type { Conflict, ConflictSide, ConflictValue } from "./types.js";

/** Whose values conflict: the target, and what is merged into it, in order. */
export interface Parties {
  readonly target: NamedCommit;
  readonly sources: readonly NamedCommit[];
}

/** A question to the history: who last wrote the value at a path of a commit. */
interface Question {
  readonly tip: LoadedCommit;
  readonly path: readonly string[];
}

/**
 * Tells of contests as data: the values, and who wrote them.
 *
 * Each value is read once, and the history is walked once for each party.
 */
export class ConflictTeller {
  private readonly values = new Map<string, Promise<JsonValue>>();
  private readonly writers = new Map<string, Commit | null>();

  constructor(
    private readonly repository: Repository,
    private readonly outcome: MergeOutcome,
    private readonly parties: Parties,
    private readonly signal?: AbortSignal | undefined,
  ) {}

  /** The conflicts of contests, one a claim; those of one contest follow each other. */
  async tell(contests: readonly PartContest[]): Promise<Conflict[][]> {
    await this.findWriters(contests);
    const told: Conflict[][] = [];
    for (const found of contests) {
      const conflicts: Conflict[] = [];
      for (const claim of found.contest.claims) conflicts.push(await this.conflict(found, claim));
      told.push(conflicts);
    }
    return told;
  }

  private async conflict({ part, contest }: PartContest, claim: Claim): Promise<Conflict> {
    const { path, ours } = contest;
    const owner = await this.ownerOfOurs(part, contest, claim);
    const theirs = this.parties.sources[claim.source] as NamedCommit;
    return {
      part,
      path: formatPointer(path),
      kind: claim.kind,
      base: claim.baseKnown ? await this.value(claim.base) : { exists: false, ambiguous: true },
      ours: await this.side(part, path, ours, owner),
      theirs: await this.side(part, path, claim.theirs, theirs),
    };
  }

  /** Who brought what stands at the path: the target, or the first source that has the same value. */
  private async ownerOfOurs(
    part: PartContest["part"],
    contest: Contest,
    claim: Claim,
  ): Promise<NamedCommit> {
    const { target, sources } = this.parties;
    for (const party of [target, ...sources.slice(0, claim.source)]) {
      const { reader, states } = this.outcome;
      const root = sideOf(await mergedPart(states, party.commit, part));
      if (same(await lookUp(reader, root, contest.path), contest.ours)) return party;
    }
    return target;
  }

  private async side(
    part: PartContest["part"],
    path: readonly string[],
    side: MaybeSide,
    owner: NamedCommit,
  ): Promise<ConflictSide> {
    const writer = part === "state" ? (this.writers.get(keyOf(owner.commit, path)) ?? null) : null;
    return { ...(await this.value(side)), branch: owner.branch, writer };
  }

  private async value(side: MaybeSide): Promise<ConflictValue> {
    if (side === undefined) return { exists: false };
    const id = identity(side);
    let value = this.values.get(id);
    if (value === undefined) {
      value = readValue(this.outcome.reader, side);
      this.values.set(id, value);
    }
    return { exists: true, value: await value };
  }

  private async findWriters(contests: readonly PartContest[]): Promise<void> {
    const questions = new Map<LoadedCommit, Question[]>();
    for (const { part, contest } of contests) {
      if (part !== "state") continue;
      for (const claim of contest.claims) {
        const owner = await this.ownerOfOurs(part, contest, claim);
        for (const { commit } of [owner, this.parties.sources[claim.source] as NamedCommit]) {
          const list = questions.get(commit) ?? [];
          list.push({ tip: commit, path: contest.path });
          questions.set(commit, list);
        }
      }
    }
    const { repository, signal } = this;
    for (const [tip, asked] of questions) {
      const paths: (readonly string[])[] = [];
      for (const { path } of asked) paths.push(await this.indexedPath(tip, path));
      const [row] = await lastWriters(repository, [tip.id], paths, { signal });
      asked.forEach(({ path }, i) => {
        const writer = row?.[i];
        this.writers.set(keyOf(tip, path), writer ? toCommit(writer.commit) : null);
      });
    }
  }

  /** The path with elements named by index, as they stand in a commit; up to where one is missing. */
  private async indexedPath(tip: LoadedCommit, path: readonly string[]): Promise<string[]> {
    const { reader } = this.outcome;
    const indexed: string[] = [];
    let at = sideOf(tip.root.state);
    for (const token of path) {
      if (at === undefined) {
        indexed.push(token);
        continue;
      }
      if ((await kindOf(reader, at)) === "list" && parseIndex(token) === undefined) {
        const index = await indexOfToken(reader, await openList(reader, at), token);
        if (index === undefined) return indexed;
        indexed.push(String(index));
      } else indexed.push(token);
      at = await lookUp(reader, at, [token]);
    }
    return indexed;
  }
}

function keyOf(tip: LoadedCommit, path: readonly string[]): string {
  return `${tip.id} ${JSON.stringify(path)}`;
}
