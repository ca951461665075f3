import type { ObjectId } from "./ids.js";

/** One move of a ref, as the log of that ref keeps it. */
export interface ReflogEntry {
  /** Full ref name, for example `refs/heads/canonical`. */
  readonly ref: string;
  /** 32 hex digits, drawn anew whenever the ref is created. */
  readonly incarnation: string;
  /** 1 for the first move of this ref name, then one more each move, deletions included. */
  readonly seq: number;
  /** Where the ref pointed before; `ZERO_ID` when it did not exist. */
  readonly old: ObjectId;
  /** Where the ref points after; `ZERO_ID` when the move deletes it. */
  readonly new: ObjectId;
  readonly actor: string;
  readonly reason: string;
  /** Milliseconds since the Unix epoch, by the mover's clock. */
  readonly time: number;
  /** W3C traceparent, or the empty string. */
  readonly trace: string;
  /** Hash of the entry before, `ZERO_ID` for the first. */
  readonly previous: ObjectId;
}

/**
 * The canonical bytes of an entry: one `key value` line a field, in this
 * order. Every value is one line (checked where it enters), so the text is
 * unambiguous, and a SQL server can build it without knowing JSON. The hash of
 * an entry is the SHA-256 of these bytes.
 */
export function reflogEntryText(e: ReflogEntry): string {
  return (
    `agstate-reflog 1\nref ${e.ref}\nincarnation ${e.incarnation}\nseq ${e.seq}\n` +
    `old ${e.old}\nnew ${e.new}\nactor ${e.actor}\nreason ${e.reason}\n` +
    `time ${e.time}\ntrace ${e.trace}\nprevious ${e.previous}\n`
  );
}
