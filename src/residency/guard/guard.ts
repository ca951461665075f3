import { LRUCache } from "lru-cache";
import type { JsonValue } from "../../core/json.js";
import { KEPT_MIN_UNITS, type Owner, RUN_UNITS, RunIndex } from "./run-index.js";
import { readings, stringsOf } from "./texts.js";

/** How many UTF-16 units of payloads are kept at most; of those that came first the texts go first. */
const GUARD_MAX_UNITS = 4 * 1024 * 1024;

/** How many short texts are remembered that home had before a payload did. */
const HOME_TEXTS_MAX = 10_000;

/** A payload that belongs to a region, by its keyed hash. */
export interface ForeignPayload extends Owner {
  readonly hash: string;
  readonly region: string;
  readonly workflow: string;
}

/**
 * The payloads that this process has written or read, by the regions that they belong to, so that a copy of one into
 * another region is found before it is written.
 *
 * Every run of 31 UTF-16 units that a text shares with a string of a payload is found, whatever its alignment, and strings of 16
 * to 30 as a whole. What was changed on its way (a summary, a translation, another encoding) is not. A short text
 * that home had before the payload came is home's own: the name of a tool is no secret because a model said it.
 */
export class CopyGuard {
  private readonly runs = new RunIndex<Kept>();
  /** In the order in which they were last added. */
  private readonly kept = new Map<string, Kept>();
  /** Short texts by the region into which they went, and when. */
  private readonly homes = new LRUCache<string, number>({ max: HOME_TEXTS_MAX });
  private units = 0;
  private clock = 0;

  constructor(private readonly maxUnits = GUARD_MAX_UNITS) {}

  /** Whether nothing was added, so that nothing need be looked at. */
  get isEmpty(): boolean {
    return this.kept.size === 0;
  }

  /** Keeps a payload's strings. Of one that is larger than all that may be kept, those that come first. */
  add(owner: ForeignPayload, value: JsonValue): void {
    const key = keyOf(owner);
    const known = this.kept.get(key);
    if (known !== undefined) {
      this.kept.delete(key);
      this.kept.set(key, known);
      return;
    }
    const texts: string[] = [];
    let units = 0;
    for (const text of new Set(stringsOf(value))) {
      if (text.length < KEPT_MIN_UNITS || units + text.length > this.maxUnits) continue;
      texts.push(text);
      units += text.length;
    }
    if (texts.length === 0) return;
    this.makeRoom(units);
    const kept = { region: owner.region, owner, texts, units, since: this.clock++ };
    for (const text of texts) this.runs.add(text, kept);
    this.kept.set(key, kept);
    this.units += units;
  }

  /**
   * Keeps what is about to be written as a payload, unless it is a copy of another region's: that is going to be refused, and
   * must not be taken for this region's.
   *
   * @returns whether it was kept
   */
  addNew(owner: ForeignPayload, value: JsonValue): boolean {
    for (const text of stringsOf(value)) {
      if (this.find(text, owner.region) !== undefined) return false;
    }
    this.add(owner, value);
    return true;
  }

  private makeRoom(units: number): void {
    for (const [key, kept] of this.kept) {
      if (this.units + units <= this.maxUnits) return;
      for (const text of kept.texts) this.runs.remove(text, kept);
      this.kept.delete(key);
      this.units -= kept.units;
    }
  }

  /**
   * Whose payload a text that is to be written into a region has a copy of; undefined when it may be written.
   *
   * @param text as it is, or with escapes as JSON has them
   */
  find(text: string, into: string | null): ForeignPayload | undefined {
    if (text.length < KEPT_MIN_UNITS) return undefined;
    const counts = ({ region, since }: Kept, source: string) =>
      region !== into && !(source.length <= RUN_UNITS && this.wasAt(into, source, since));
    if (this.kept.size > 0) {
      for (const reading of readings(text)) {
        const found = this.runs.find(reading, counts);
        if (found !== undefined) return found.owner;
      }
    }
    if (text.length <= RUN_UNITS) {
      const place = placeOf(into, text);
      if (!this.homes.has(place)) this.homes.set(place, this.clock++);
    }
    return undefined;
  }

  private wasAt(into: string | null, text: string, before: number): boolean {
    const at = this.homes.get(placeOf(into, text));
    return at !== undefined && at < before;
  }
}

interface Kept extends Owner {
  readonly owner: ForeignPayload;
  readonly texts: readonly string[];
  readonly units: number;
  /** When it came, by the guard's own count. */
  readonly since: number;
}

function placeOf(into: string | null, text: string): string {
  return `${into ?? ""}\0${text}`;
}

function keyOf({ hash, region, workflow }: ForeignPayload): string {
  return `${region}\0${hash}\0${workflow}`;
}
