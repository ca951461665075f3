import type { Conflict, JsonValue, Resolution } from "../../src/index.js";
import { type ModelCommit, mergePart, type Part } from "./merge-histories.js";
import { canon, type Maybe, MergeModel, type ModelContest, pathKey } from "./merge-model.js";
import { RESOLVERS } from "./merge-values.js";

/** A path as a JSON Pointer. */
export const pointerOf = (path: readonly string[]) =>
  path.map((token) => `/${token.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");

/** What a person, or a function, would say to a conflict; the same for the same path. */
export function answer(
  part: Part,
  path: readonly string[],
  kind: string,
  salt: number,
): Resolution {
  const said = (path.join("/").length + kind.length + salt) % 4;
  if (said === 0) return { take: "ours" };
  if (said === 1 || part === "policy" || path.length === 0) return { take: "theirs" };
  // An element without its id could not be found again.
  if (said === 2 || path.at(-1)?.includes("=")) return { delete: true };
  return { value: { resolved: path.length, __proto__: null } };
}

export interface Expected {
  readonly values: Record<Part, Maybe>;
  readonly contests: readonly (ModelContest & { readonly part: Part })[];
  readonly ambiguous: boolean;
}

const PARTS: readonly Part[] = ["state", "policy"];
type Settled = ReadonlyMap<string, Maybe>;
export const contestKey = (contest: Expected["contests"][number]) =>
  canon(JSON.parse(JSON.stringify(contest)) as JsonValue);

/** What a merge gives by the model, with some of its contests settled. */
export function expectMerge(
  target: ModelCommit,
  sources: readonly ModelCommit[],
  policies: Readonly<Record<string, string>>,
  settled: Readonly<Record<Part, Settled>>,
): Expected {
  const values: Record<Part, Maybe> = { state: undefined, policy: undefined };
  const contests: (ModelContest & { part: Part })[] = [];
  let ambiguous = false;
  for (const part of PARTS) {
    const rules = part === "state" ? policies : {};
    const merged = mergePart(
      part,
      target,
      sources,
      (s) => new MergeModel(rules, RESOLVERS, s),
      settled[part],
    );
    values[part] = merged.value;
    ambiguous ||= merged.ambiguous;
    contests.push(...merged.contests.map((contest) => ({ ...contest, part })));
  }
  return { values, contests, ambiguous };
}

/** What a contested path is to hold once each of its claims was decided. */
export function decide(
  { part, path, ours, claims }: Expected["contests"][number],
  salt: number,
): Maybe {
  return claims.reduce<Maybe>((standing, { kind, theirs }) => {
    const said = answer(part, path, kind, salt);
    if ("take" in said) return said.take === "ours" ? standing : theirs;
    return "delete" in said ? undefined : (said.value as JsonValue);
  }, ours);
}

export const nothing = { state: new Map<string, Maybe>(), policy: new Map<string, Maybe>() };

export function settleAll(
  contests: Expected["contests"],
  salt: number,
): Record<Part, Map<string, Maybe>> {
  const settled = { state: new Map<string, Maybe>(), policy: new Map<string, Maybe>() };
  for (const contest of contests)
    settled[contest.part].set(pathKey(contest.path), decide(contest, salt));
  return settled;
}

/** Conflicts of the store and contests of the model, told alike. */
export function tellFound(conflicts: readonly Conflict[]): string[] {
  const value = (side: Conflict["base"]) =>
    side.exists ? canon(side.value) : "ambiguous" in side ? "ambiguous" : "absent";
  return conflicts
    .map(({ part, path, kind, base, ours, theirs }) =>
      [part, path, kind, value(base), value(ours), value(theirs)].join(" | "),
    )
    .sort();
}
export function tellExpected(contests: Expected["contests"]): string[] {
  return contests
    .flatMap(({ part, path, ours, claims }) =>
      claims.map(({ kind, base, baseKnown, theirs }) =>
        [
          part,
          pointerOf(path),
          kind,
          baseKnown ? canon(base) : "ambiguous",
          canon(ours),
          canon(theirs),
        ].join(" | "),
      ),
    )
    .sort();
}
