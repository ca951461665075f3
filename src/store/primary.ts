import { AgstateError } from "../core/errors.js";
import type { Replica, Storage, StoreDescription } from "../storage/port.js";

/**
 * Refuses what must not be decided by what a replica says: it may be old, and what is done by it would be done in vain, or twice.
 *
 * Nobody is asked where the primary is read, so that this can stand before everything that decides.
 *
 * @param what such as `merge`
 * @throws AgstateError `STORE_READONLY`
 */
export async function mustBePrimary(storage: Storage, what: string): Promise<void> {
  if (storage.mayBeReplica?.() === true) refuseReplica(await storage.describe(), what);
}

/** The same for a store that has described itself. */
export function refuseReplica({ location, replica }: StoreDescription, what: string): void {
  if (replica === null) return;
  throw new AgstateError(
    "STORE_READONLY",
    `store ${location} is a replica, ${ageOf(replica)}, and what it says may not be so any more: to ${what}, name the primary in the store's URL`,
    { location, operation: what, replica },
  );
}

/** How old what a replica says may be, and how far it has come, in words. */
export function ageOf({ behindMs, position }: Replica): string {
  if (behindMs === null) return `behind by nobody knows how much (at ${position})`;
  if (behindMs === 0) return `with all that it was told of (at ${position})`;
  return `at most ${(behindMs / 1000).toFixed(1)} s behind (at ${position})`;
}

/** Where reads come from. */
export interface ReadFrom {
  /** Whether what is read may be old: it comes from a replica. */
  readonly stale: boolean;
  /** How far the replica has come; null where the primary is read, or an embedded store. */
  readonly replica: Replica | null;
}

/** Where reads come from; nobody is asked where that is the primary. */
export async function readFrom(storage: Storage): Promise<ReadFrom> {
  const replica = storage.mayBeReplica?.() === true ? (await storage.describe()).replica : null;
  return { stale: replica !== null, replica };
}
