import { AgstateError } from "../../core/errors.js";
import type { ObjectId } from "../../core/ids.js";
import type { JsonValue } from "../../core/json.js";
import { checkIdentity, checkOneLine, quoteForMessage } from "../../core/names.js";
import type { LoadedCommit } from "../../objects/commit-reader.js";
import { decodeValue } from "../../objects/decode.js";
import { encodeValue, toLink } from "../../objects/encode.js";
import type { WrittenObject } from "../../objects/sink.js";
import { checkRefComponent, shortRefName } from "../../refs/names.js";
import { movedRow, type RefUpdate } from "../../refs/ref-store.js";
import { parseReviewRecord, type ReviewRecord } from "../../reviews/record.js";
import type { RefRow } from "../../storage/port.js";
import type { Repository } from "../repository.js";
import { prepareCommit } from "../write-commit.js";
import { reviewIsolation } from "./isolation.js";

const REVIEWS = "refs/reviews/";

/** A review as it was read. */
export interface StoredReview {
  readonly id: string;
  readonly row: RefRow;
  readonly commit: LoadedCommit;
  readonly record: ReviewRecord;
}

function reviewRef(id: string): string {
  return REVIEWS + checkRefComponent("review", id);
}

/** Reviews whose id begins with a prefix, sorted by id; those that a later version wrote are passed over. */
export async function listReviews(repository: Repository, prefix = ""): Promise<StoredReview[]> {
  const rows = await repository.refs.list(REVIEWS + prefix);
  await repository.loadAhead(
    rows.map(({ id }) => id as ObjectId),
    ["state"],
    true,
  );
  const commits = await repository.commits.readAll(rows.map(({ id }) => id as ObjectId));
  const reviews: StoredReview[] = [];
  for (const [i, row] of rows.entries()) {
    const review = await load(repository, row, commits[i] as LoadedCommit);
    if (review !== null) reviews.push(review);
  }
  return reviews;
}

/** @throws AgstateError `REVIEW_NOT_FOUND`, `INVALID_NAME` */
export async function readReview(repository: Repository, name: string): Promise<StoredReview> {
  const id = name.replace(/^(?:refs\/)?reviews\//, "");
  const row = await repository.refs.row(reviewRef(id));
  if (row === undefined || row.id === null) {
    throw new AgstateError(
      "REVIEW_NOT_FOUND",
      `there is no review ${quoteForMessage(id)}; agstate review list shows those that there are`,
      { review: id },
    );
  }
  const review = await load(repository, row, await repository.commits.read(row.id));
  if (review !== null) return review;
  throw new AgstateError(
    "CORRUPT_OBJECT",
    `${shortRefName(row.name)} is at ${row.id}, which holds no review that this version can read`,
    { ref: row.name, id: row.id },
  );
}

async function load(
  repository: Repository,
  row: RefRow,
  commit: LoadedCommit,
): Promise<StoredReview | null> {
  const link = commit.root.state;
  if (link === undefined) return null;
  const record = parseReviewRecord(await decodeValue(repository.objectsOf(commit), link));
  return record && { id: row.name.slice(REVIEWS.length), row, commit, record };
}

/** Who changes a review, and why. */
export interface ReviewNote {
  readonly actor: string;
  /** One line, of which the commit and the log tell. */
  readonly says: string;
}

/** A change of a review that is ready to be written, alone or with other moves. */
export interface PreparedChange {
  readonly id: string;
  readonly update: RefUpdate;
  readonly objects: readonly WrittenObject[];
  readonly loaded: LoadedCommit;
}

/** Makes the commit of a review's change; writes nothing. */
export function prepareChange(
  repository: Repository,
  at: { readonly id: string } | StoredReview,
  record: ReviewRecord,
  note: ReviewNote,
): PreparedChange {
  const before = "row" in at ? at : undefined;
  const actor = checkIdentity("actor", note.actor);
  const says = checkOneLine("reason", note.says);
  const sink = repository.newSink();
  const value = record as unknown as JsonValue;
  const prepared = prepareCommit(repository, {
    sink,
    parents: before === undefined ? [] : [before.commit],
    root: { state: toLink(sink, encodeValue(sink, value, reviewIsolation(repository, record))) },
    author: actor,
    minStep: 1,
    options: { message: says },
  });
  return {
    id: at.id,
    objects: prepared.objects,
    loaded: prepared.loaded,
    update: {
      ref: reviewRef(at.id),
      expect:
        before === undefined
          ? { kind: "absent" }
          : { kind: "id", id: before.row.id as ObjectId, seq: before.row.seq },
      target: prepared.record.id,
      commits: [prepared.record],
      note: { actor, reason: says },
    },
  };
}

/**
 * Writes a change of a review.
 *
 * @returns null when somebody else was faster, and nothing was written
 */
export async function writeChange(
  repository: Repository,
  at: { readonly id: string } | StoredReview,
  record: ReviewRecord,
  note: ReviewNote,
): Promise<StoredReview | null> {
  const change = await repository.keys.encoding(async () =>
    prepareChange(repository, at, record, note),
  );
  const [answer] = await repository.refs.apply({
    updates: [change.update],
    objects: change.objects.map((object) => object.record),
  });
  if (answer?.outcome === "conflict") return null;
  const row = movedRow(change.update, answer);
  repository.objects.prime(change.objects);
  return { id: at.id, row, commit: change.loaded, record };
}
