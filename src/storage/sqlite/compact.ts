import { statSync } from "node:fs";
import type { Database } from "better-sqlite3";
import type { Compacted } from "../port.js";

/** Calls a piece of work until no other connection is in its way. */
type Retry = <T>(work: () => T) => Promise<T>;

/** Looks like SQLite's own error, since `wal_checkpoint` answers that others are in the way, and does not throw. */
class BusyCheckpoint extends Error {
  readonly code = "SQLITE_BUSY";
}

/**
 * Writes the file anew without what is gone, and empties the log, in which the new pages are first.
 *
 * VACUUM makes a copy in a temporary file, which goes where SQLite puts such (`SQLITE_TMPDIR`), and then into the
 * log: it needs twice the space of what stays. It takes the write lock, and readers may go on; the log is emptied once none
 * of them reads an older state.
 */
export async function compact(db: Database, retry: Retry): Promise<Compacted> {
  const bytesBefore = sizeOf(db.name);
  await retry(() => db.exec("VACUUM"));
  await retry(() => {
    const [answer] = db.pragma("wal_checkpoint(TRUNCATE)") as { readonly busy: number }[];
    if (answer?.busy !== 0) throw new BusyCheckpoint("others read an older state");
  });
  return { bytesBefore, bytesAfter: sizeOf(db.name) };
}

/** Bytes of the main file and of its log. */
function sizeOf(main: string): number {
  return [main, `${main}-wal`].reduce(
    (sum, path) => sum + (statSync(path, { throwIfNoEntry: false })?.size ?? 0),
    0,
  );
}
