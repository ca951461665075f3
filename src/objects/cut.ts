import type { ObjectId } from "../core/ids.js";
import {
  NODE_CUT_ONE_IN,
  NODE_MAX_COUNT,
  NODE_MIN_COUNT,
  RUN_MAX_BYTES,
  RUN_MAX_COUNT,
  RUN_MIN_COUNT,
  RUN_TARGET_BYTES,
} from "./format.js";

/**
 * Where a run of elements ends: after element i when the run has at least
 * `RUN_MIN_COUNT` elements and the element's hash says so, or at
 * `RUN_MAX_COUNT` elements, or at `RUN_MAX_BYTES` bytes. Only the elements
 * since the last cut decide, never what comes after, which is what makes the
 * cuts a function of the value alone. An element cuts with a probability in
 * proportion to its size, so that runs of small and of large elements come out
 * alike. (Prolly trees: Noms; content-defined chunking: Muthitacharoen and
 * others, "A Low-bandwidth Network File System", 2001.)
 */
export class RunCut {
  private count = 0;
  private bytes = 0;

  /** Counts an element in; true when the run closes after it. */
  closesAfter(text: string, bytes: number): boolean {
    this.count++;
    this.bytes += bytes;
    if (
      this.count >= RUN_MAX_COUNT ||
      this.bytes >= RUN_MAX_BYTES ||
      (this.count >= RUN_MIN_COUNT && elementHash(text, bytes) % RUN_TARGET_BYTES < bytes)
    ) {
      this.reset();
      return true;
    }
    return false;
  }

  get empty(): boolean {
    return this.count === 0;
  }

  reset(): void {
    this.count = 0;
    this.bytes = 0;
  }
}

/** Where a node of a list or text ends: the same rule over child ids, by count alone. */
export class NodeCut {
  private count = 0;

  closesAfter(id: ObjectId): boolean {
    this.count++;
    if (
      this.count >= NODE_MAX_COUNT ||
      (this.count >= NODE_MIN_COUNT && Number.parseInt(id.slice(0, 8), 16) % NODE_CUT_ONE_IN === 0)
    ) {
      this.count = 0;
      return true;
    }
    return false;
  }

  get empty(): boolean {
    return this.count === 0;
  }
}

/**
 * FNV-1a (32 bits) over the element's UTF-8, with the finaliser of MurmurHash3
 * for its low bits. It only places cuts; identity rests on SHA-256.
 */
function elementHash(text: string, bytes: number): number {
  let h = 0x811c9dc5;
  if (bytes === text.length) {
    for (let i = 0; i < bytes; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  } else {
    for (const byte of Buffer.from(text)) h = Math.imul(h ^ byte, 0x01000193);
  }
  h ^= h >>> 16;
  h = Math.imul(h, 0x85ebca6b);
  h ^= h >>> 13;
  h = Math.imul(h, 0xc2b2ae35);
  h ^= h >>> 16;
  return h >>> 0;
}
