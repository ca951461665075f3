import { setTimeout as sleep } from "node:timers/promises";
import { AgstateError } from "../../core/errors.js";
import { checkOneLine } from "../../core/names.js";
import type { RefRow } from "../../storage/port.js";
import type { Repository } from "../repository.js";
import { Lease, type LeasedBranch } from "./lease.js";
import { isGone, type ProcessIdentity, thisProcess } from "./process-identity.js";
import { type LeaseRecord, leaseRecord } from "./record.js";
import { leaseRef, moveLease, readLease } from "./stored.js";

export interface AcquireOptions {
  /** For how long a holder that gives no sign of life is left alone, in milliseconds, 100 to 3,600,000; default 15,000. */
  readonly ttlMs?: number;
  /** How long to wait for a holder that lives, in milliseconds; default 0. */
  readonly waitMs?: number;
  /** Who holds it, for others to read; default `HOST:PID`. */
  readonly holder?: string;
  /** Ends the waiting. */
  readonly signal?: AbortSignal;
}

/** Who holds a lease. */
export interface LeaseInfo {
  readonly branch: string;
  readonly holder: string;
  readonly token: number;
  readonly acquiredAt: Date;
  readonly ttlMs: number;
  /** Whether its process is known to have ended: the next one to acquire the lease gets it at once. */
  readonly gone: boolean;
}

const DEFAULT_TTL_MS = 15_000;
const TTL_MIN_MS = 100;
const TTL_MAX_MS = 3_600_000;
/** How long it is between looks at a lease that is held. */
const LOOK_MAX_MS = 500;
const LOOKS_A_TTL = 10;
const HOLDER_MAX_BYTES = 200;

/**
 * Acquires the lease on a branch.
 *
 * One that is held is taken over only from a holder that is known to be gone, or gave no sign of life for
 * its `ttlMs`, as measured here from the first look: no two clocks are compared.
 *
 * @throws AgstateError `LEASE_HELD` as soon as a holder is seen to live and `waitMs` is over, `INVALID_ARGUMENT`
 */
export async function acquireLease(
  repository: Repository,
  branch: LeasedBranch,
  options: AcquireOptions = {},
): Promise<Lease> {
  const { ttlMs = DEFAULT_TTL_MS, waitMs = 0, signal } = options;
  checkTime("ttlMs", ttlMs, TTL_MIN_MS, TTL_MAX_MS);
  checkTime("waitMs", waitMs, 0, Number.MAX_SAFE_INTEGER);
  const own = thisProcess();
  const holder = checkOneLine("holder", options.holder ?? defaultHolder(own), HOLDER_MAX_BYTES);
  const ref = leaseRef(branch.ref);
  const began = performance.now();
  let watched: Watched | undefined;
  for (;;) {
    signal?.throwIfAborted();
    const [row, head] = await rowsOf(repository, [ref, branch.ref]);
    const held = row === undefined || row.id === null ? null : row;
    const record = held === null ? null : await readLease(repository, held);
    const now = performance.now();
    const sign = `${held?.seq} ${head?.seq}`;
    const alive = watched !== undefined && watched.sign !== sign;
    if (watched === undefined || alive) watched = { sign, since: now };
    const silentFor = now - watched.since;
    const free =
      held === null ||
      (record !== null && (isGone(record.process) || silentFor >= record.ttlMs)) ||
      // Written by a later version, whose time to live is not known here.
      (record === null && silentFor >= DEFAULT_TTL_MS);
    if (free) {
      const mine = leaseRecord({
        holder,
        process: own,
        ttlMs,
        acquiredAt: repository.context.now(),
      });
      const reason = `lease: acquired by ${holder}`;
      const note = { actor: branch.author, reason };
      const moved = await moveLease(repository, { ref, row }, mine, note);
      if (moved !== null) return new Lease(repository, branch, mine, moved, moved.seq);
      watched = undefined;
      continue;
    }
    if (alive && now - began >= waitMs) throw leaseHeld(branch.name, held, record);
    const pause = Math.min((record?.ttlMs ?? ttlMs) / LOOKS_A_TTL, LOOK_MAX_MS);
    await sleep(pause, undefined, signal === undefined ? {} : { signal });
  }
}

/** A lease that is watched: what changes with each sign of life, and since when it has not. */
interface Watched {
  readonly sign: string;
  readonly since: number;
}

/** Who holds the lease on a branch; null when nobody does. */
export async function leaseOn(
  repository: Repository,
  branch: { readonly ref: string; readonly name: string },
): Promise<LeaseInfo | null> {
  const row = await repository.refs.row(leaseRef(branch.ref));
  const record = await readLease(repository, row);
  if (row === undefined || record === null) return null;
  const { holder, acquiredAt, ttlMs, token = row.seq } = record;
  const gone = isGone(record.process);
  return { branch: branch.name, holder, token, acquiredAt: new Date(acquiredAt), ttlMs, gone };
}

async function rowsOf(
  repository: Repository,
  names: readonly string[],
): Promise<(RefRow | undefined)[]> {
  const rows = await repository.storage.readRefs(repository.workflow, { names });
  return names.map((name) => rows.find((row) => row.name === name));
}

function defaultHolder({ host, pid }: ProcessIdentity): string {
  return `${host}:${pid}`;
}

function checkTime(what: string, value: number, min: number, max: number): void {
  if (Number.isFinite(value) && value >= min && value <= max) return;
  throw new AgstateError(
    "INVALID_ARGUMENT",
    `${what} is ${value}; it is a number of milliseconds from ${min} to ${max}`,
    { [what]: value, min, max },
  );
}

function leaseHeld(branch: string, row: RefRow | null, record: LeaseRecord | null): AgstateError {
  const holder = record?.holder ?? "a later version of agstate";
  return new AgstateError(
    "LEASE_HELD",
    `${holder} holds the lease on ${branch} and is at work; let it finish, or wait for it with waitMs`,
    { branch, holder, token: record?.token ?? row?.seq ?? null },
  );
}
