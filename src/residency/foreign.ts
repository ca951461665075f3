import type { JsonValue } from "../core/json.js";
import type { WriteBatch } from "../storage/port.js";
import type { CopyGuard } from "./guard/guard.js";
import type { Digest, KnownStrings } from "./guard/known-strings.js";

/** A payload as its region has it: its value, or its text under the workflow's key, in base64. */
export type PayloadBody = { readonly value: JsonValue } | { readonly sealed: string };

/** What a store that was opened through regions can do with values that belong to other regions than its own. */
export interface ForeignRegions {
  /** The region of the store. */
  readonly home: string;
  /** Knows the payloads that were written or read through the same regions. */
  readonly guard: CopyGuard;
  /** Has a workflow with parts in other regions watched, and gives what is known of its payloads by their pointers. */
  watch(workflow: string, digest: Digest): KnownStrings;
  /**
   * Looks whether a write holds a copy of another region's payload, as is done when it is made: for what is to wait before it is.
   *
   * @throws AgstateError `RESIDENCY_REFUSED`
   */
  check(batch: WriteBatch): Promise<void>;
  /**
   * Reads payloads of a workflow, in one call to the region's store.
   *
   * @returns by hash those that are there; null when the region is not known here or cannot be reached
   */
  read(
    workflow: string,
    region: string,
    hashes: readonly string[],
  ): Promise<ReadonlyMap<string, PayloadBody> | null>;
  /**
   * Removes a workflow's payloads from a region that no pointer stands for and that were last written before a moment.
   *
   * @param wanted the hashes that pointers hold
   * @returns how many; null when the region is not known here or cannot be reached
   */
  sweep(
    workflow: string,
    region: string,
    before: number,
    wanted: ReadonlySet<string>,
  ): Promise<number | null>;
}
