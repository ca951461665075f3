import { AgstateError } from "../core/errors.js";
import { checkRefComponent } from "../refs/names.js";
import type { Branch } from "./branch.js";
import type { LeftBehind } from "./discard.js";
import type { MergeOptions, MergeResult } from "./merge/types.js";

/** What speculation needs of a workflow. */
interface SpeculationHost {
  resolve(revision: string): Promise<string>;
  branch(options: {
    readonly agent: string;
    readonly branch: string;
    readonly from: string;
    readonly create: "always";
  }): Promise<Branch>;
  merge(branches: readonly string[], options: MergeOptions): Promise<MergeResult>;
  deleteBranch(
    name: string,
    options: { readonly actor: string; readonly reason: string; readonly since: string },
  ): Promise<{ readonly id: string } & LeftBehind>;
}

/** A way to go on from a state: it works on a branch of its own, and may answer anything. */
export type SpeculationStrategy<Answer> = (
  branch: Branch,
  context: { readonly name: string; readonly signal: AbortSignal },
) => Promise<Answer>;

/** How a strategy came out. */
export type Candidate<Answer> = {
  readonly name: string;
  readonly branch: Branch;
} & (
  | { readonly outcome: "done"; readonly answer: Answer }
  | { readonly outcome: "failed"; readonly error: unknown }
);

export interface SpeculateOptions<Answer> {
  /** Where all branches begin; default `canonical`. */
  readonly from?: string;
  /** By name; each gets the branch `agents/<agent>/<name>-<random>`. */
  readonly strategies: Readonly<Record<string, SpeculationStrategy<Answer>>>;
  /** Names the winner among those that are done; null when none is good enough. Not asked when all failed. */
  readonly judge: (
    candidates: readonly (Candidate<Answer> & { outcome: "done" })[],
  ) => string | null | Promise<string | null>;
  /** Whose branches they are; default `speculation`. */
  readonly agent?: string;
  /** How the winner is merged; `into` is by default canonical. */
  readonly merge?: MergeOptions;
  readonly signal?: AbortSignal;
}

/** A branch that lost, with the side effects since it began; its history stays reachable through its reflog. */
export interface Discarded extends LeftBehind {
  readonly name: string;
  /** Short name of the branch that is gone. */
  readonly branch: string;
  /** Its last commit: `workflow.branch({ ..., from: head })` brings it back. */
  readonly head: string;
  /** Why, when the strategy failed. */
  readonly error?: unknown;
}

export interface SpeculateResult<Answer> {
  readonly winner: string | null;
  readonly answer: Answer | null;
  readonly candidates: readonly Candidate<Answer>[];
  /** Null when nothing won. With conflicts nothing was discarded. */
  readonly merge: MergeResult | null;
  readonly discarded: readonly Discarded[];
}

/**
 * Runs strategies side by side, each on a branch of its own, merges the one
 * that the judge names and discards the others.
 *
 * A strategy that throws is a failed candidate, not an error. When the winner
 * does not merge cleanly, all branches stay, so that nothing is lost while
 * somebody decides.
 *
 * @throws AgstateError `INVALID_ARGUMENT`, `INVALID_NAME`; what the judge throws (all branches stay)
 */
export async function speculate<Answer>(
  workflow: SpeculationHost,
  randomHex: (bytes: number) => string,
  options: SpeculateOptions<Answer>,
): Promise<SpeculateResult<Answer>> {
  const { agent = "speculation", from = "canonical" } = options;
  const signal = options.signal ?? new AbortController().signal;
  const names = Object.keys(options.strategies);
  if (names.length === 0) {
    throw new AgstateError("INVALID_ARGUMENT", "speculate needs at least one strategy");
  }
  for (const name of names) checkRefComponent("strategy", name);
  const start = await workflow.resolve(from);
  const suffix = randomHex(4);
  const branches: Branch[] = [];
  for (const name of names) {
    const branch = `${name}-${suffix}`;
    branches.push(await workflow.branch({ agent, branch, from: start, create: "always" }));
  }
  const candidates = await Promise.all(
    names.map(async (name, i): Promise<Candidate<Answer>> => {
      const branch = branches[i] as Branch;
      try {
        signal.throwIfAborted();
        const strategy = options.strategies[name] as SpeculationStrategy<Answer>;
        return { name, branch, outcome: "done", answer: await strategy(branch, { name, signal }) };
      } catch (error) {
        return { name, branch, outcome: "failed", error };
      }
    }),
  );
  signal.throwIfAborted();
  const done = candidates.filter((c) => c.outcome === "done");
  const winner = done.length === 0 ? null : await options.judge(done);
  const chosen = done.find(({ name }) => name === winner);
  if (winner !== null && chosen === undefined) {
    throw new AgstateError(
      "INVALID_ARGUMENT",
      `the judge named ${JSON.stringify(winner)}; it must be null or one of ${done.map(({ name }) => name).join(", ")}`,
      { winner, candidates: done.map(({ name }) => name) },
    );
  }
  const answer = chosen?.answer ?? null;
  const merge =
    chosen === undefined
      ? null
      : await workflow.merge([chosen.branch.ref], {
          message: `Merge ${chosen.branch.name}, chosen of ${names.length}`,
          signal,
          ...options.merge,
        });
  if (merge?.status === "conflict") return { winner, answer, candidates, merge, discarded: [] };
  const discarded: Discarded[] = [];
  for (const candidate of candidates) {
    if (candidate === chosen) continue;
    discarded.push(await discard(workflow, candidate, start, winner));
  }
  return { winner, answer, candidates, merge, discarded };
}

async function discard<Answer>(
  workflow: SpeculationHost,
  candidate: Candidate<Answer>,
  start: string,
  winner: string | null,
): Promise<Discarded> {
  const { name, branch } = candidate;
  const { id: head, sideEffects } = await workflow.deleteBranch(branch.ref, {
    actor: branch.author,
    since: start,
    reason: winner === null ? "speculation: nothing won" : `speculation: ${winner} won`,
  });
  return {
    name,
    branch: branch.name,
    head,
    ...(candidate.outcome === "failed" ? { error: candidate.error } : {}),
    sideEffects,
  };
}
