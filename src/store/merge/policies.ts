import { checkPolicies, type Policies, policiesToJson, type Strategy } from "../../merge/policy.js";
import type { LoadedCommit } from "../../objects/commit-reader.js";
import { decodeValue } from "../../objects/decode.js";
import { encodeValue, type Link, toLink } from "../../objects/encode.js";
import type { ObjectSink } from "../../objects/sink.js";
import type { Repository } from "../repository.js";

/**
 * The merge policies that a commit holds.
 *
 * @throws AgstateError `INVALID_POLICY`
 */
export async function policiesOf(repository: Repository, commit: LoadedCommit): Promise<Policies> {
  const link = commit.root.policy;
  return link === undefined ? {} : checkPolicies(await decodeValue(repository.objects, link));
}

/** Writes merge policies as a commit holds them; undefined when there are none. */
export function encodePolicies(sink: ObjectSink, policies: Policies): Link | undefined {
  if (Object.keys(policies).length === 0) return undefined;
  return toLink(sink, encodeValue(sink, policiesToJson(policies), null));
}

/**
 * The policies of a commit with some of them set, or removed (null).
 *
 * @throws AgstateError `INVALID_POLICY`, `INVALID_PATH`
 */
export async function changedPolicies(
  repository: Repository,
  commit: LoadedCommit,
  sink: ObjectSink,
  changes: Readonly<Record<string, Strategy | null>>,
): Promise<Link | undefined> {
  const policies = new Map(Object.entries(await policiesOf(repository, commit)));
  for (const [path, strategy] of Object.entries(changes)) {
    // Checked one by one, so that the path is written as it is compared.
    const [[known]] = Object.entries(checkPolicies({ [path]: strategy ?? "ours" })) as [
      [string, Strategy],
    ];
    if (strategy === null) policies.delete(known);
    else policies.set(known, strategy);
  }
  return encodePolicies(sink, checkPolicies(Object.fromEntries(policies)));
}
