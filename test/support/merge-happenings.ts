import fc from "fast-check";
import type { Strategy } from "../../src/index.js";
import { anyIsolation, anyPolicies, anyRecipe, someEdits } from "./merge-values.js";

export const BRANCHES = ["canonical", "agents/a/x", "agents/b/y", "agents/c/z"];
const branch = fc.nat(BRANCHES.length - 1);

const merging = {
  salt: fc.nat(3),
  how: fc.constantFrom<("report" | "function" | "hand" | "later")[]>(
    "report",
    "function",
    "function",
    "hand",
    "later",
  ),
  call: fc.option(anyPolicies, { nil: {}, freq: 4 }),
  edits: someEdits,
};

/** What happens to a history, one thing after another. */
const happening = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ what: fc.constant("edit" as const), branch, edits: someEdits }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      what: fc.constant("merge" as const),
      into: branch,
      sources: fc.array(branch, { minLength: 1, maxLength: 3 }),
      ...merging,
    }),
  },
  {
    // Two branches merge each other as they were: from then on they have two merge bases.
    weight: 2,
    arbitrary: fc.record({
      what: fc.constant("cross" as const),
      into: branch,
      with: branch,
      one: fc.record({ edits: someEdits, more: someEdits }),
      other: fc.record({ edits: someEdits, more: someEdits }),
      ...merging,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      what: fc.constant("policy" as const),
      branch,
      path: fc.constantFrom("/n", "/log", "/tags", "/any/*", "/items"),
      strategy: fc.constantFrom<(Strategy | null)[]>(
        "append",
        "ours",
        "sum",
        "union",
        "by-id:id",
        null,
      ),
    }),
  },
);

/** A history from its beginning. */
export const anyHistory = fc.record({
  recipe: anyRecipe,
  policies: anyPolicies,
  isolation: anyIsolation,
  happenings: fc.array(happening, { minLength: 5, maxLength: 14, size: "max" }),
});
export type History = typeof anyHistory extends fc.Arbitrary<infer H> ? H : never;
export type Happening = History["happenings"][number];
export type Merging = Omit<Happening & { what: "merge" }, "what" | "sources">;
