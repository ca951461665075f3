import type { JsonValue } from "../../core/json.js";
import { isWithheld } from "../../core/withheld.js";
import type { Link } from "../encode.js";
import type { ObjectReader } from "../reader.js";
import type { ObjectSink } from "../sink.js";
import { treeKind } from "../tree-kind.js";
import { ListDraft } from "./list-draft.js";
import { ObjectDraft } from "./object-draft.js";
import { TextDraft } from "./text-draft.js";
import { type Draft, type DraftContext, LeafDraft, type StoredDraft } from "./types.js";

/** Any draft, told apart by `kind`. */
export type AnyDraft = LeafDraft | StoredDraft | ObjectDraft | ListDraft | TextDraft;

/** Makes the context in which the values of one write are edited. */
export function createDraftContext(reader: ObjectReader, sink: ObjectSink): DraftContext {
  const context: DraftContext = { reader, sink, open: (link) => openDraft(context, link) };
  return context;
}

async function openDraft(context: DraftContext, link: Link): Promise<AnyDraft> {
  const { reader } = context;
  const object = reader.peek(link.id) ?? (await reader.read(link.id));
  if (object.type === "opaque") {
    return new LeafDraft(context, reader.withheld(link.id, object) as unknown as JsonValue);
  }
  if (object.type === "blob") {
    return new LeafDraft(context, JSON.parse(object.text) as JsonValue);
  }
  switch (treeKind(object.entries)) {
    case "list":
      return ListDraft.stored(context, link.id);
    case "text":
      return TextDraft.stored(context, link.id);
    default:
      return ObjectDraft.stored(context, object.entries);
  }
}

/** The draft as one whose members, elements or text can be edited; scalars stay leaves. */
export function unfold(context: DraftContext, draft: Draft): AnyDraft {
  const any = draft as AnyDraft;
  if (any.kind !== "leaf") return any;
  const { value } = any;
  if (isWithheld(value)) return any;
  if (typeof value === "string") return TextDraft.from(context, value);
  if (Array.isArray(value)) return ListDraft.from(context, value);
  if (typeof value === "object" && value !== null) {
    return ObjectDraft.from(context, value as { [key: string]: JsonValue });
  }
  return any;
}
