import type { Checker } from "../types.js";
import { type LocalGit, observeLocalRef } from "./git-local.js";
import { OBJECT_ID, parseGitName } from "./git-names.js";
import { comparesTokens } from "./tokens.js";

export interface GitCheckerOptions {
  /** Where repositories lie that ids name by a path; left out, none is looked at. */
  readonly local?: LocalGit;
}

/** Knows refs of Git repositories by `REPOSITORY#REF`: their version is the id of the object that they are at. */
export function gitChecker({ local }: GitCheckerOptions): Checker {
  return {
    async observe({ id }, context) {
      const name = parseGitName(id);
      if (typeof name === "string") return { kind: "unknown", why: name };
      const { repository, ref } = name;
      if (local === undefined) {
        return { kind: "unknown", why: "no root is configured below which repositories lie" };
      }
      return await observeLocalRef(local, repository, ref, context.signal);
    },
    compare: comparesTokens(OBJECT_ID, "of a ref"),
  };
}
