import type { JsonValue } from "../../core/json.js";
import type { ProcessIdentity } from "./process-identity.js";

/** The version of the record that this code writes. */
const LEASE_RECORD_VERSION = 1;

/** Who holds a lease, as the commit on its ref has it. */
export interface LeaseRecord {
  readonly v: number;
  /** As people read it. */
  readonly holder: string;
  readonly process: ProcessIdentity;
  /** For how long a lease without a sign of life is left alone, in milliseconds. */
  readonly ttlMs: number;
  /** When it was acquired, in milliseconds since the Unix epoch: for people, nothing depends on it. */
  readonly acquiredAt: number;
  /** The fencing token: the number of the log entry by which it was acquired; absent in the record of that very entry. */
  readonly token?: number;
}

export function leaseRecord(fields: Omit<LeaseRecord, "v">): LeaseRecord {
  return { v: LEASE_RECORD_VERSION, ...fields };
}

/** A record as it was read; null when this code does not know its version or form. */
export function parseLeaseRecord(value: JsonValue | null): LeaseRecord | null {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
  const record = value as unknown as Partial<LeaseRecord>;
  const known =
    typeof record.v === "number" &&
    record.v <= LEASE_RECORD_VERSION &&
    typeof record.holder === "string" &&
    typeof record.process === "object" &&
    typeof record.ttlMs === "number" &&
    typeof record.acquiredAt === "number";
  return known ? (record as LeaseRecord) : null;
}
