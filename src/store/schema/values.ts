import { LRUCache } from "lru-cache";
import type { ObjectId } from "../../core/ids.js";
import type { JsonValue } from "../../core/json.js";
import { holdsWithheld } from "../../core/withheld.js";

/** What a state was, and what it was migrated to. */
export interface MigratedKey {
  readonly workflow: string;
  readonly state: ObjectId;
  readonly from: number;
  readonly to: number;
}

/** States that were migrated to be read, least recently used first out, so that reading at many paths is one migration. */
export class MigratedValues {
  private readonly values: LRUCache<string, { readonly value: JsonValue }>;

  constructor(maxBytes: number) {
    this.values = new LRUCache({
      maxSize: maxBytes,
      sizeCalculation: ({ value }) => JSON.stringify(value).length,
    });
  }

  get(key: MigratedKey): JsonValue | undefined {
    return this.values.get(textOf(key))?.value;
  }

  /** Keeps a value, unless another time more of it may be told. */
  set(key: MigratedKey, value: JsonValue): void {
    if (!holdsWithheld(value)) this.values.set(textOf(key), { value });
  }

  clear(): void {
    this.values.clear();
  }
}

function textOf({ workflow, state, from, to }: MigratedKey): string {
  return `${state} ${from} ${to} ${workflow}`;
}
