import type { TreeEntry } from "./tree.js";

/** What a value's tree is, as its first entry tells. */
export function treeKind(entries: readonly TreeEntry[]): "list" | "text" | "fan" | "object" {
  switch (entries[0]?.name[0]) {
    case "[":
      return "list";
    case '"':
      return "text";
    case "{":
      return "fan";
    default:
      return "object";
  }
}
