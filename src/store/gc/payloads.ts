import { readPointer } from "../../objects/pointer.js";
import { ENCODING } from "../../storage/port.js";
import type { Repository } from "../repository.js";

/** However short the grace period is, a payload is spared for so long: the write that its pointer comes with may be under way. */
const WRITE_MAX_MS = 10 * 60_000;

const PAGE = 5000;

/** What became of payloads in other regions that no pointer stands for any more. */
export interface SweptPayloads {
  readonly removed: number;
  /** Regions that could not be had, where some may be left. */
  readonly unreached: readonly string[];
}

/**
 * Removes payloads in other regions that no pointer at home stands for: what a write has left that did not land, and what was
 * collected.
 *
 * @returns null when the workflow has no parts elsewhere, or was not opened through regions
 */
export async function sweepPayloads(
  { placed, storage, workflow, context }: Repository,
  graceMs: number,
): Promise<SweptPayloads | null> {
  if (placed?.foreign === undefined) return null;
  const before = context.now() - Math.max(graceMs, WRITE_MAX_MS);
  const wanted = new Map(placed.regions.map((region) => [region, new Set<string>()]));
  for (let after: string | null = null; ; ) {
    const page = await storage.scanObjects(workflow, after, PAGE);
    for (const object of page.rows) {
      if ("tombstone" in object || object.encoding !== ENCODING.pointer) continue;
      const { region, hash } = readPointer(Buffer.from(object.body).toString("utf8"), object.id);
      wanted.get(region)?.add(hash);
    }
    after = page.next;
    if (after === null) break;
  }
  let removed = 0;
  const unreached: string[] = [];
  for (const [region, hashes] of wanted) {
    const swept = await placed.foreign.sweep(workflow, region, before, hashes);
    if (swept === null) unreached.push(region);
    else removed += swept;
  }
  return { removed, unreached };
}
