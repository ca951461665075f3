import { formatPointer, parsePointer } from "../../src/core/json-pointer.js";
import type { JsonValue, Policies } from "../../src/index.js";
import { PathMarks } from "../../src/merge/path-marks.js";
import { checkPolicies, PolicyScope } from "../../src/merge/policy.js";
import type { CustomResolvers, Resolution } from "../../src/merge/resolvers.js";
import { type MaybeSide, readValue, sideOf } from "../../src/merge/side.js";
import { ThreeWayMerge } from "../../src/merge/three-way.js";
import { createDraftContext } from "../../src/objects/draft/draft.js";
import { compileIsolation, isolationOfKey } from "../../src/objects/isolation.js";
import { ObjectSink } from "../../src/objects/sink.js";
import type { Maybe, ModelContest, ModelResolver, ModelSource } from "./merge-model.js";
import { ObjectStore } from "./object-store.js";

export interface EngineInput {
  readonly ours: Maybe;
  readonly sources: readonly ModelSource[];
  readonly policies?: Readonly<Record<string, string>>;
  readonly resolvers?: Readonly<Record<string, ModelResolver>>;
  readonly isolation?: readonly string[];
}

/** The model's resolvers as the engine takes them. */
export function engineResolvers(
  resolvers: Readonly<Record<string, ModelResolver>>,
): CustomResolvers {
  const entries = Object.entries(resolvers).map(([name, resolve]) => [
    name,
    {
      version: "1",
      resolve: (values: {
        path: string;
        base?: JsonValue;
        ours?: JsonValue;
        theirs?: JsonValue;
      }) => {
        const { path, base, ours, theirs } = values;
        return resolve({ path: parsePointer(path), base, ours, theirs }) as Resolution | undefined;
      },
    },
  ]);
  return Object.fromEntries(entries) as CustomResolvers;
}

export function engineIsolation(paths: readonly string[]) {
  return isolationOfKey(compileIsolation(paths), "state");
}

/** Stores values, merges them with the engine, and tells the outcome as plain values. */
export async function engineMerge(input: EngineInput) {
  const isolation = engineIsolation(input.isolation ?? []);
  const store = new ObjectStore();
  const stored = (value: Maybe): MaybeSide =>
    value === undefined ? undefined : sideOf(store.write(value, isolation).link);
  const sink = new ObjectSink();
  const reader = store.reader().with({ get: (id) => sink.get(id) });
  const merge = new ThreeWayMerge({
    context: createDraftContext(reader, sink),
    isolation,
    policies: PolicyScope.of(checkPolicies(input.policies ?? {}) as Policies),
    resolvers: engineResolvers(input.resolvers ?? {}),
    maxBytes: 1 << 28,
  });
  let ours = stored(input.ours);
  for (const { base, unknown = [], theirs } of input.sources) {
    const marks = new PathMarks<true>();
    for (const path of unknown) marks.set(path, true);
    ours = await merge.merge(ours, {
      base: stored(base),
      unknown: unknown.length === 0 ? undefined : marks,
      theirs: stored(theirs),
    });
  }
  const { reads } = store;
  const plain = async (side: MaybeSide): Promise<Maybe> =>
    side === undefined ? undefined : readValue(reader, side);
  const contests: ModelContest[] = [];
  for (const [, contest] of merge.contests.entries()) {
    const claims = [];
    for (const claim of contest.claims) {
      claims.push({ ...claim, base: await plain(claim.base), theirs: await plain(claim.theirs) });
    }
    contests.push({ path: contest.path, ours: await plain(contest.ours), claims });
  }
  return {
    value: await plain(ours),
    id: ours?.link?.id,
    contests,
    reads,
    stored: store.objects.size,
  };
}

/** Contests in an order that does not depend on who found them. */
export function inOrder(contests: readonly ModelContest[]): ModelContest[] {
  return [...contests].sort((a, b) => (formatPointer(a.path) < formatPointer(b.path) ? -1 : 1));
}
