import { checkCredentials } from "../credentials.js";
import type { Checker } from "../types.js";
import { type LocalGit, observeLocalRef } from "./git-local.js";
import { OBJECT_ID, parseGitName } from "./git-names.js";
import { observeRemoteRef, type RemoteGit } from "./git-remote.js";
import { comparesTokens } from "./tokens.js";

export interface GitCheckerOptions {
  /** Where repositories lie that ids name by a path; left out, none is looked at. */
  readonly local?: LocalGit | undefined;
  /** How repositories are asked that ids name by a URL; left out, none is. */
  readonly remote?: RemoteGit | undefined;
}

/**
 * Knows refs of Git repositories by `REPOSITORY#REF`: their version is the id of the object that they are at.
 *
 * @throws AgstateError `INVALID_ARGUMENT` for credentials that cannot be sent
 */
export function gitChecker({ local, remote }: GitCheckerOptions): Checker {
  const asked = remote && { ...remote, credentials: checkCredentials(remote.credentials ?? []) };
  return {
    async observe({ id }, context) {
      const name = parseGitName(id);
      if (typeof name === "string") return { kind: "unknown", why: name };
      const { repository, ref } = name;
      if (name.remote) {
        return asked === undefined
          ? { kind: "unknown", why: "no way to ask other hosts is configured" }
          : await observeRemoteRef(asked, repository, ref, context);
      }
      return local === undefined
        ? { kind: "unknown", why: "no root is configured below which repositories lie" }
        : await observeLocalRef(local, repository, ref, context.signal);
    },
    compare: comparesTokens(OBJECT_ID, "of a ref"),
  };
}
