import type { ObjectReader } from "./reader.js";
import { type ListElement, splitArray } from "./runs.js";
import type { SequenceEntry } from "./sequence.js";

/**
 * The elements of an entry of a list that is no node, in one read: their texts, or a link where one stands alone.
 *
 * Of a run that is withheld each element is a link to the run: all that is known of it is that it is part of that. Such
 * a link, put elsewhere, is withheld there as well.
 */
export async function runElements(
  reader: ObjectReader,
  { kind, type, id, count }: SequenceEntry,
): Promise<ListElement[]> {
  if (kind === "e") return [{ type, id }];
  const object = await reader.read(id);
  if (object.type !== "blob") return new Array<ListElement>(count).fill({ type: "blob", id });
  return splitArray(object.text).map((text) => ({
    text,
    bytes: Buffer.byteLength(text),
  }));
}
