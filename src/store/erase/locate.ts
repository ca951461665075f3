import type { ObjectId } from "../../core/ids.js";
import type { JsonValue } from "../../core/json.js";
import { isWithheld } from "../../core/withheld.js";
import { decodeValue } from "../../objects/decode.js";
import { unescapeKey } from "../../objects/keys.js";
import type { DecodedObject, ObjectReader } from "../../objects/reader.js";
import { readNode } from "../../objects/sequence.js";
import type { Link, TreeEntry } from "../../objects/tree.js";
import { treeKind } from "../../objects/tree-kind.js";
import type { Found, FoundAs } from "./found.js";
import { leafStrings, type Needles } from "./needles.js";
import { belowIndex, belowKey, endsHere, type Paths, valuesAt } from "./paths.js";

/** How many objects one call reads. */
const BATCH = 1000;

/** An object on the way to a place, or part of what stands there. */
interface Step {
  readonly link: Link;
  /** Where paths lead on; of an object below the end of one, how it is taken. */
  readonly at: Paths | "value" | "record" | "piece";
  /** Of a node or run of a list, the index of its first element; else null. */
  readonly start: number | null;
}

/**
 * Finds the objects at the ends of paths, in many versions of a value at once: what versions share is looked at once. Strings
 * that stand there become needles.
 */
export class Locator {
  readonly #met = new Set<string>();
  #open: Step[] = [];
  /** Objects on the way whose contents are not told. */
  unread = 0;

  constructor(
    private readonly reader: ObjectReader,
    private readonly found: Found,
    private readonly needles: Needles,
  ) {}

  /** Begins at a value; `atHand` is the object itself where no storage has it. */
  begin(link: Link, paths: Paths, atHand: DecodedObject | undefined): void {
    const step: Step = { link, at: endsHere(paths) ? "value" : paths, start: null };
    if (atHand === undefined) this.#push(step);
    else if (paths.length > 0) this.#look(step, atHand);
  }

  /** Takes a whole record, whatever is in it, without looking for copies of its strings. */
  take(link: Link, atHand: DecodedObject | undefined): void {
    const step: Step = { link, at: "record", start: null };
    if (atHand === undefined) this.#push(step);
    else this.#look(step, atHand);
  }

  /** Goes on until all is found. */
  async finish(): Promise<void> {
    while (this.#open.length > 0) {
      const steps = this.#open.splice(0, BATCH);
      const objects = await this.reader.readAll(steps.map(({ link }) => link.id));
      for (const [i, step] of steps.entries()) {
        const object = objects[i] as DecodedObject;
        this.#look(step, object);
        if (step.at === "value" && object.type === "tree" && treeKind(object.entries) === "text") {
          const text = await decodeValue(this.reader, step.link);
          if (typeof text === "string") this.needles.add(text);
        }
      }
    }
  }

  #push(step: Step): void {
    const { at } = step;
    if (typeof at !== "string" && at.length === 0) return;
    const way = typeof at === "string" ? at : at.map(({ id }) => id).join();
    const name = `${step.link.id} ${way} ${step.start}`;
    if (this.#met.has(name)) return;
    this.#met.add(name);
    this.#open.push(step);
  }

  #look(step: Step, object: DecodedObject): void {
    const { link, at } = step;
    if (typeof at === "string") this.#takeAll(step, object);
    else if (object.type === "opaque") {
      if (object.note.reason === "key" || object.note.reason === "region") this.unread++;
    } else if (object.type === "tree") {
      this.#descend(step, object.entries, at);
    } else {
      const value = JSON.parse(object.text) as JsonValue;
      const values =
        step.start === null
          ? [...valuesAt(value, at)]
          : elementsAt(value as readonly JsonValue[], at, step.start);
      for (const each of values) this.#addStrings(each);
      if (values.length > 0) this.found.add(link.id, "blob", "holder");
    }
  }

  #descend({ link, start }: Step, entries: readonly TreeEntry[], paths: Paths): void {
    switch (treeKind(entries)) {
      case "text":
        return;
      case "list": {
        let index = start ?? 0;
        for (const entry of readNode(entries, link.id)) {
          if (entry.kind === "e") this.#below(entry, belowIndex(paths, index));
          else this.#push({ link: entry, at: paths, start: index });
          index += entry.count;
        }
        return;
      }
      default:
        for (const entry of entries) {
          if (entry.name[0] === "{") this.#push({ link: entry, at: paths, start: null });
          else this.#below(entry, belowKey(paths, unescapeKey(entry.name)));
        }
    }
  }

  #below(link: Link, paths: Paths): void {
    this.#push({ link, at: endsHere(paths) ? "value" : paths, start: null });
  }

  /** Takes an object at or below the end of a path, and what is below it. */
  #takeAll({ link, at }: Step, object: DecodedObject): void {
    if (object.type === "opaque") {
      const { reason } = object.note;
      if (reason !== "erased" && reason !== "expired") this.#add(link.id, object.of, at);
      return;
    }
    this.#add(link.id, object.type, at);
    if (object.type === "blob") {
      if (at === "value") this.#addStrings(JSON.parse(object.text) as JsonValue);
      return;
    }
    const isText = treeKind(object.entries) === "text";
    const below = isText && at === "value" ? "piece" : at;
    for (const entry of object.entries) this.#push({ link: entry, at: below, start: null });
  }

  #add(id: ObjectId, type: "blob" | "tree", at: Step["at"]): void {
    const as: FoundAs = at === "record" ? "record" : "value";
    this.found.add(id, type, as);
  }

  #addStrings(value: JsonValue): void {
    if (isWithheld(value)) return;
    for (const text of leafStrings(value)) this.needles.add(text);
  }
}

/** What paths lead to in a run, which holds the elements of a list from an index on. */
function elementsAt(run: readonly JsonValue[], paths: Paths, start: number): JsonValue[] {
  return run.flatMap((element, i) => [...valuesAt(element, belowIndex(paths, start + i))]);
}
