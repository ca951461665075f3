import type { ObjectId } from "../../core/ids.js";
import { canonicalText } from "../../objects/canonical.js";
import type { Redacted, Redaction, TombstoneRecord } from "../../storage/port.js";
import type { Repository } from "../repository.js";

/** How many objects, and how many commits' rows, one transaction changes. */
const OBJECTS_BATCH = 500;
const COMMITS_BATCH = 200;

/** What a tombstone says, for as long as the workflow is there. */
export interface TombstoneNote {
  readonly reason: "erased";
  /** The request, as the audit names it. */
  readonly record: string;
  readonly by: string;
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
  readonly why: string;
}

/** What goes. */
export interface Burial {
  readonly objects: ReadonlyMap<ObjectId, "blob" | "tree">;
  /** Which of them commits' rows hold. */
  readonly inline: ReadonlyMap<ObjectId, readonly ObjectId[]>;
  readonly pending: readonly { readonly key: string; readonly index: number }[];
}

/** Drops pending rows, and puts tombstones in the place of objects, in commits' rows first, in small transactions. */
export async function bury(
  { storage, workflow }: Repository,
  { objects, inline, pending }: Burial,
  note: TombstoneNote,
): Promise<Redacted> {
  const tombstone = Buffer.from(canonicalText({ ...note }));
  const stone = (id: ObjectId): TombstoneRecord => ({
    id,
    type: objects.get(id) as "blob" | "tree",
    tombstone,
  });
  const done = { objects: 0, inline: 0, grafts: 0, pending: 0, bytes: 0 };
  const redact = async (some: Partial<Redaction>) => {
    const redacted = await storage.redact(workflow, {
      tombstones: [],
      inline: [],
      grafts: [],
      ...some,
    });
    for (const key of ["objects", "inline", "pending", "bytes"] as const)
      done[key] += redacted[key];
  };
  // First, since only what is in objects tells an erasure that was cut off what to look for in these.
  for (const some of chunks(pending, OBJECTS_BATCH)) await redact({ pending: some });
  const rows = [...inline]
    .map(([commit, held]) => ({ commit, held: held.filter((id) => objects.has(id)) }))
    .filter(({ held }) => held.length > 0);
  for (const some of chunks(rows, COMMITS_BATCH)) {
    const held = new Set(some.flatMap((row) => row.held));
    await redact({
      tombstones: [...held].map(stone),
      inline: some.map(({ commit }) => commit),
    });
  }
  for (const some of chunks([...objects.keys()], OBJECTS_BATCH)) {
    await redact({ tombstones: some.map(stone) });
  }
  return done;
}

function* chunks<T>(all: readonly T[], size: number): Generator<T[], void, undefined> {
  for (let at = 0; at < all.length; at += size) yield all.slice(at, at + size);
}
