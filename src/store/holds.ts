import { AgstateError } from "../core/errors.js";
import type { ObjectId } from "../core/ids.js";
import { checkIdentity, checkReason, quoteForMessage } from "../core/names.js";
import type { LoadedCommit } from "../objects/commit-reader.js";
import { ObjectSink } from "../objects/sink.js";
import { checkRefComponent, HOLDS, shortRefName } from "../refs/names.js";
import { movedRow, type RefUpdate } from "../refs/ref-store.js";
import type { RefRow } from "../storage/port.js";
import type { Repository } from "./repository.js";
import { prepareCommit } from "./write-commit.js";

export interface HoldOptions {
  /** What the hold is called: one component, such as `smith-v-jones`; default `hold-<random>`. */
  readonly name?: string;
  /** Why the commit must stay, in one line. */
  readonly reason: string;
  /** Who places it; default `agstate`. */
  readonly actor?: string;
}

export interface ReleaseOptions {
  /** Why the commit need not stay any more, in one line. */
  readonly reason: string;
  /** Who releases it; default `agstate`. */
  readonly actor?: string;
}

/** A hold: a commit, with all that it reaches, that stays until the hold is released. */
export interface HoldInfo {
  readonly name: string;
  /** The commit that is held. */
  readonly commit: string;
  readonly reason: string;
  readonly by: string;
  /** To the second. */
  readonly at: Date;
}

/** Who acts when nobody is named. */
const DEFAULT_ACTOR = "agstate";

/** The longest reason, in bytes: the log says a few words more. */
const REASON_MAX_BYTES = 900;
const KEPT = "a hold is placed and released for a reason that its log keeps";

/**
 * Holds a commit, by a commit on top of it that a ref of its own points to: its author says who holds, its message why,
 * and its state is the held one, so that whoever reads, merges or goes on from it meets the state and nothing else.
 *
 * @throws AgstateError `REVISION_NOT_FOUND`, `REF_EXISTS`, `INVALID_NAME`, `INVALID_VALUE`, `MISSING_OBJECT` when the
 *   commit is collected at this moment
 */
export async function placeHold(
  repository: Repository,
  revision: string,
  options: HoldOptions,
): Promise<HoldInfo> {
  const actor = checkIdentity("actor", options.actor ?? DEFAULT_ACTOR);
  const reason = checkReason(options.reason, KEPT, REASON_MAX_BYTES);
  const ref = holdRef(options.name ?? `hold-${repository.context.randomHex(4)}`);
  const held = await repository.commitAt(revision);
  const { state, envelope, policy } = held.root;
  const prepared = prepareCommit(repository, {
    sink: new ObjectSink(),
    parents: [held],
    root: { state, envelope, policy },
    author: actor,
    minStep: 1,
    options: { message: reason },
  });
  const update: RefUpdate = {
    ref,
    expect: { kind: "absent" },
    target: prepared.record.id,
    commits: [prepared.record],
    note: { actor, reason: `hold: ${reason}` },
  };
  const [answer] = await repository.refs.apply({ updates: [update] });
  if (answer?.outcome === "conflict") throw taken(ref, answer.actual);
  return toHold(movedRow(update, answer), prepared.loaded);
}

/** Holds that are not released, sorted by name. */
export async function listHolds(repository: Repository): Promise<HoldInfo[]> {
  const rows = await repository.refs.list(HOLDS);
  const commits = await repository.commits.readAll(rows.map(({ id }) => id as ObjectId));
  return rows.map((row, i) => toHold(row, commits[i] as LoadedCommit));
}

/**
 * Releases a hold. Others on the same commit stay, and so does the log of this one.
 *
 * @returns the hold as it was
 * @throws AgstateError `REF_NOT_FOUND`, `REF_CONFLICT` when somebody else was faster, `INVALID_NAME`, `INVALID_VALUE`
 */
export async function releaseHold(
  repository: Repository,
  name: string,
  options: ReleaseOptions,
): Promise<HoldInfo> {
  const actor = checkIdentity("actor", options.actor ?? DEFAULT_ACTOR);
  const reason = checkReason(options.reason, KEPT, REASON_MAX_BYTES);
  const ref = holdRef(name.replace(/^(?:refs\/)?holds\//, ""));
  const row = await repository.refs.row(ref);
  if (row === undefined || row.id === null) {
    throw new AgstateError(
      "REF_NOT_FOUND",
      `there is no hold ${quoteForMessage(ref.slice(HOLDS.length))}; agstate hold list shows those that there are`,
      { ref },
    );
  }
  const hold = toHold(row, await repository.commits.read(row.id));
  const update: RefUpdate = {
    ref,
    expect: { kind: "id", id: row.id, seq: row.seq },
    target: null,
    note: { actor, reason: `release: ${reason}` },
  };
  const [answer] = await repository.refs.apply({ updates: [update] });
  movedRow(update, answer);
  return hold;
}

function holdRef(name: string): string {
  return HOLDS + checkRefComponent("hold", name);
}

function toHold(row: RefRow, commit: LoadedCommit): HoldInfo {
  const [held, ...more] = commit.parents;
  if (held === undefined || more.length > 0) {
    throw new AgstateError(
      "CORRUPT_OBJECT",
      `${shortRefName(row.name)} is at ${commit.id}, which holds no single commit; its log tells who put it there`,
      { ref: row.name, id: commit.id },
    );
  }
  return {
    name: row.name.slice(HOLDS.length),
    commit: held,
    reason: commit.message,
    by: commit.author,
    at: new Date(commit.authorTime * 1000),
  };
}

function taken(ref: string, actual: RefRow | null): AgstateError {
  const name = quoteForMessage(ref.slice(HOLDS.length));
  return new AgstateError(
    "REF_EXISTS",
    `there is a hold ${name} already; holds on one commit stand beside each other, so choose another name`,
    { ref, id: actual?.id ?? null },
  );
}
