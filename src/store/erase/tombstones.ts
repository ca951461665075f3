import type { ObjectId } from "../../core/ids.js";
import { isJsonObject, type JsonValue } from "../../core/json.js";
import { noteOfTombstone } from "../../objects/sealing.js";
import type { TombstoneRecord } from "../../storage/port.js";
import type { Repository } from "../repository.js";
import { erasureRecords } from "./record.js";

/** What is said of an object that is gone. */
export interface GoneObject {
  readonly id: ObjectId;
  readonly type: "blob" | "tree";
  readonly reason: "erased" | "expired";
  /** Who took it out, and why; null where the tombstone does not say. */
  readonly by: string | null;
  readonly why: string | null;
  readonly at: Date | null;
  /** The record in the audit: an erasure's request, or the commit that tells what retention did. */
  readonly record: string | null;
}

export function goneObject({ id, type, tombstone }: TombstoneRecord): GoneObject {
  const { by, at, why, record } = membersOf(tombstone);
  const { reason } = noteOfTombstone(tombstone);
  return {
    id,
    type,
    reason: reason === "expired" ? "expired" : "erased",
    by: typeof by === "string" ? by : null,
    why: typeof why === "string" ? why : null,
    at: typeof at === "number" ? new Date(at) : null,
    record: typeof record === "string" ? record : null,
  };
}

/** The requests that the audit tells of. */
export async function recordedErasures(repository: Repository): Promise<Set<string>> {
  const ids = new Set<string>();
  for await (const { id } of erasureRecords(repository)) ids.add(id);
  return ids;
}

function membersOf(tombstone: Uint8Array): { readonly [name: string]: JsonValue } {
  try {
    const value = JSON.parse(Buffer.from(tombstone).toString("utf8")) as JsonValue;
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}
