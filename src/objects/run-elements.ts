import type { ObjectReader } from "./reader.js";
import { type ListElement, splitArray } from "./runs.js";
import type { Seal } from "./sealing.js";
import type { SequenceEntry } from "./sequence.js";

/** The elements of a run, and how they would be sealed, were they objects of their own. */
export interface ReadRun {
  readonly elements: ListElement[];
  readonly seal: Seal;
}

/**
 * The elements of an entry of a list that is no node, in one read: their texts, or a link where one stands alone.
 *
 * Of a run that is withheld each element is a link to the run: all that is known of it is that it is part of that. Such
 * a link, put elsewhere, is withheld there as well.
 */
export async function readRun(
  reader: ObjectReader,
  { kind, type, id, count }: SequenceEntry,
): Promise<ReadRun> {
  const { seal } = reader;
  if (kind === "e") return { elements: [{ type, id }], seal };
  const object = await reader.read(id);
  if (object.type !== "blob") {
    return { elements: new Array<ListElement>(count).fill({ type: "blob", id }), seal };
  }
  const elements = splitArray(object.text).map((text) => ({
    text,
    bytes: Buffer.byteLength(text),
  }));
  return { elements, seal: object.seal ?? seal };
}

/** The same without how they would be sealed. */
export async function runElements(
  reader: ObjectReader,
  entry: SequenceEntry,
): Promise<ListElement[]> {
  return (await readRun(reader, entry)).elements;
}
