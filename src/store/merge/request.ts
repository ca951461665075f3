import { AgstateError } from "../../core/errors.js";
import type { ObjectId } from "../../core/ids.js";
import { quoteForMessage } from "../../core/names.js";
import type { Policies } from "../../merge/policy.js";
import type { CustomResolvers } from "../../merge/resolvers.js";
import type { LoadedCommit } from "../../objects/commit-reader.js";
import { shortRefName } from "../../refs/names.js";
import type { ResolvedRevision } from "../../refs/revisions.js";
import type { RefRow } from "../../storage/port.js";
import type { Repository } from "../repository.js";
import type { WriteOptions } from "../types.js";
import { readCommitsAhead } from "./read-ahead.js";
import type { StoredResolution } from "./settle.js";
import type { MergeRecord, ResolveFunction } from "./types.js";

/** A commit that takes part in a merge, and the name that it was given by. */
export interface NamedCommit {
  /** As people see it: a branch's short name, or the revision. */
  readonly branch: string;
  readonly commit: LoadedCommit;
}

/** What is to be merged into what, and how; the same for each attempt. */
export interface MergeRequest {
  readonly operation: MergeRecord["operation"];
  /** Full name of the branch that is merged into. */
  readonly into: string;
  /** The branch as it was found with the sources, for the first attempt; undefined when that is to read it. */
  readonly row?: RefRow | undefined;
  /** What is merged; of a cherry-pick or revert the one commit whose change it is. */
  readonly sources: readonly NamedCommit[];
  /** Of a cherry-pick or revert: which parent of a merge its change is counted from, from 1. */
  readonly mainline?: number | undefined;
  readonly author: string;
  readonly write: Pick<WriteOptions, "message" | "date" | "trace">;
  readonly fastForward: "auto" | "never" | "only";
  readonly allowUnrelated: boolean;
  readonly allowOpenIntents: boolean;
  readonly policies: Policies;
  readonly resolvers: CustomResolvers;
  readonly resolve?: ResolveFunction | undefined;
  /** Resolutions made by hand. */
  readonly resolutions: readonly StoredResolution[];
  readonly maxAttempts: number;
  readonly signal?: AbortSignal | undefined;
}

/** How often a merge is made anew by default when others move its target meanwhile. */
export const DEFAULT_MAX_ATTEMPTS = 100;

/** Who merges when nobody is named. */
export const DEFAULT_MERGER = "supervisor";

/**
 * Finds what a merge of branches into a ref is about, and reads ahead what it will need where that
 * saves calls to the storage.
 */
export async function nameSources(
  repository: Repository,
  revisions: readonly string[],
  into: string,
): Promise<Pick<MergeRequest, "sources" | "row">> {
  if (!repository.objects.readsAhead) return { sources: await nameCommits(repository, revisions) };
  const { resolved, rows } = await repository.revisions.resolveBeside(revisions, [into]);
  const row = rows.find(({ name }) => name === into);
  const named = revisions.map((revision, i) => nameOf(revision, resolved[i] as ResolvedRevision));
  const ids = named.map(({ id }) => id);
  if (row !== undefined && row.id !== null) await readCommitsAhead(repository, row.id, ids);
  return { row, sources: await withCommits(repository, named) };
}

/** Finds the commits that names mean, and the names that people know them by. */
export async function nameCommits(
  repository: Repository,
  revisions: readonly string[],
): Promise<NamedCommit[]> {
  const resolved = await repository.revisions.resolveAll(revisions);
  const named = revisions.map((revision, i) => nameOf(revision, resolved[i] as ResolvedRevision));
  return withCommits(repository, named);
}

/** A name that people know a commit by, and its id. */
interface Named {
  readonly branch: string;
  readonly id: ObjectId;
}

/** @throws AgstateError `INVALID_ARGUMENT` for a revision with a path */
function nameOf(revision: string, { id, ref, pointer }: ResolvedRevision): Named {
  if (pointer !== null) {
    throw new AgstateError(
      "INVALID_ARGUMENT",
      `${quoteForMessage(revision)} names a value; name a branch or a commit`,
      { revision },
    );
  }
  return { branch: ref?.id === id ? shortRefName(ref.name) : revision, id };
}

async function withCommits(
  repository: Repository,
  named: readonly Named[],
): Promise<NamedCommit[]> {
  const commits = await repository.commits.readAll(named.map(({ id }) => id));
  return named.map(({ branch }, i) => ({ branch, commit: commits[i] as LoadedCommit }));
}

/**
 * The versions of the custom resolvers that policies name.
 *
 * @throws AgstateError `RESOLVER_NOT_FOUND`
 */
export function resolverVersions(
  policies: Policies,
  resolvers: CustomResolvers,
): Record<string, string> {
  const versions: [string, string][] = [];
  for (const [path, strategy] of Object.entries(policies)) {
    if (!strategy.startsWith("custom:")) continue;
    const name = strategy.slice("custom:".length);
    const resolver = Object.hasOwn(resolvers, name) ? resolvers[name] : undefined;
    if (resolver === undefined) {
      throw new AgstateError(
        "RESOLVER_NOT_FOUND",
        `the merge policy for ${JSON.stringify(path)} is ${strategy}, but no resolver ${JSON.stringify(name)} is registered; give it to openStore or to the merge as resolvers`,
        { path, strategy, resolver: name },
      );
    }
    if (typeof resolver.resolve !== "function" || typeof resolver.version !== "string") {
      throw new AgstateError(
        "INVALID_ARGUMENT",
        `resolver ${JSON.stringify(name)} must have a version (a string) and a function resolve`,
        { resolver: name },
      );
    }
    versions.push([name, resolver.version]);
  }
  return Object.fromEntries(versions.sort(([a], [b]) => (a < b ? -1 : 1)));
}
