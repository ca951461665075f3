import type { WrittenObject } from "../objects/sink.js";
import type { CommitRecord } from "../storage/port.js";

/** The bytes of a commit's body and of the objects that go with it, without what its row holds beside. */
export function bodyBytes({
  record,
  objects,
}: {
  readonly record: Pick<CommitRecord, "body">;
  readonly objects: readonly WrittenObject[];
}): number {
  return objects.reduce((sum, object) => sum + object.record.body.length, record.body.length);
}
