import { parseIndex } from "../core/json-pointer.js";
import type { ObjectReader } from "../objects/reader.js";
import { indexOfToken } from "./by-id.js";
import { elementsFrom, openList } from "./list-tail.js";
import { kindOf, type MaybeSide, Members } from "./side.js";

/**
 * Finds what stands at a path below a side.
 *
 * A list's element is named by its index, or as conflicts name it: `id="a7"`.
 */
export async function lookUp(
  reader: ObjectReader,
  side: MaybeSide,
  path: readonly string[],
): Promise<MaybeSide> {
  let at = side;
  for (const token of path) {
    if (at === undefined) return undefined;
    const kind = await kindOf(reader, at);
    if (kind === "object") at = await (await Members.of(reader, at)).get(token);
    else if (kind === "list") {
      const list = await openList(reader, at);
      const index = parseIndex(token) ?? (await indexOfToken(reader, list, token));
      if (index === undefined || index >= list.length) return undefined;
      at = (await elementsFrom(reader, list, index))[0];
    } else return undefined;
  }
  return at;
}
