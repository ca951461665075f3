import type { ObjectId } from "../../core/ids.js";
import { ZERO_ID } from "../../core/ids.js";
import type { StoredReflogEntry } from "../port.js";
import { idOf, rawId } from "./rows.js";
import type { Statements } from "./statements.js";

/** How many places in logs are remembered for the next page. */
const PLACES_MAX = 64;

/** An entry not yet read: what the entry after it, or the ref's row, tells of it. */
interface Place {
  readonly seq: number;
  readonly new: ObjectId;
  readonly hash: ObjectId;
}

/**
 * Reads logs back from the ref's row, entry by entry: an entry is a row of
 * `reflog`, or columns of the commit that it moved the ref to, which is known
 * from the `old` of the entry after it.
 *
 * The place where a page ended is remembered, so that paging through a log
 * does not walk from its end each time; entries never change, so a place stays
 * right.
 */
export class ReflogReader {
  readonly #places = new Map<string, Place>();

  constructor(readonly statements: Statements) {}

  read(wf: number, name: string, limit: number, fromSeq: number): StoredReflogEntry[] {
    const row = this.statements.ref.get(wf, name);
    if (row === undefined || limit <= 0) return [];
    let place: Place = { seq: row.seq, new: row.id || ZERO_ID, hash: row.log_hash };
    const remembered = this.#places.get(`${row.ref}:${fromSeq}`);
    if (fromSeq < row.seq && remembered !== undefined) place = remembered;

    const entries: StoredReflogEntry[] = [];
    while (place.seq > 0 && entries.length < limit) {
      const entry = this.#entryAt(wf, row.ref, name, place);
      if (entry === null) return entries;
      if (entry.seq <= fromSeq) entries.push(entry);
      place = { seq: entry.seq - 1, new: entry.old, hash: entry.previous };
    }
    this.#remember(`${row.ref}:${place.seq}`, place);
    return entries;
  }

  #remember(key: string, place: Place): void {
    this.#places.delete(key);
    this.#places.set(key, place);
    if (this.#places.size > PLACES_MAX) this.#places.delete(this.#places.keys().next().value!);
  }

  #entryAt(wf: number, ref: number, name: string, place: Place): StoredReflogEntry | null {
    const { seq, hash } = place;
    const row = this.statements.reflog.get(ref, seq);
    if (row !== undefined) {
      return {
        ref: name,
        seq,
        hash,
        incarnation: row.incarnation.toString("hex"),
        old: idOf(row.old),
        new: idOf(row.new),
        actor: row.actor,
        reason: row.reason,
        time: row.time,
        trace: row.trace,
        previous: idOf(row.previous),
      };
    }
    if (place.new === ZERO_ID) return null;
    const commit = this.statements.commitLog.get(wf, rawId(place.new));
    if (commit === undefined || commit.log_ref !== ref || commit.log_seq !== seq) return null;
    return {
      ref: name,
      seq,
      hash,
      incarnation: commit.log_incarnation.toString("hex"),
      old: commit.parents.length === 0 ? ZERO_ID : idOf(commit.parents.subarray(0, 32)),
      new: place.new,
      actor: commit.log_actor,
      reason: commit.log_reason,
      time: commit.log_time,
      trace: commit.log_trace ?? "",
      previous: idOf(commit.log_previous),
    };
  }
}
