import { LRUCache } from "lru-cache";
import type { Classification } from "../../core/classification.js";
import type { DataKeys } from "../../keys/data-keys.js";
import type { WorkflowKeys } from "../../keys/workflow-keys.js";
import type { WorkflowRecord } from "../../storage/port.js";
import { type FirstKeys, firstKeys, type KeySource, openKeys } from "./open.js";

/** How many workflows' keys are shared by all handles of a store. */
const SHARED_MAX = 10_000;

/** The keys of an open store's workflows: all handles of one share them, so that they forget a key together. */
export class KeyChain {
  private readonly shared = new LRUCache<string, DataKeys>({ max: SHARED_MAX });

  constructor(readonly source: KeySource) {}

  /**
   * Opens a workflow's keys, as they are in the store now.
   *
   * @throws AgstateError `KEY_UNAVAILABLE`, `CORRUPT_OBJECT`, `UNSUPPORTED_ENCODING`
   */
  async open(record: WorkflowRecord): Promise<WorkflowKeys> {
    const keys = await openKeys(this.source, record, this.shared.get(record.id));
    this.share(keys);
    return keys;
  }

  /** The keys of a workflow as they were opened last, if it has some. */
  known(workflow: string): WorkflowKeys | undefined {
    return this.shared.get(workflow);
  }

  /** Makes the keys of a workflow that is about to be created; they are shared once it is. */
  first(
    workflow: string,
    classification: Classification,
    hasPointers: boolean,
  ): Promise<FirstKeys> {
    return firstKeys(this.source, workflow, classification, hasPointers);
  }

  share(keys: WorkflowKeys): void {
    // Those of a workflow that has some; their class is not loaded to be asked.
    if (keys.keyed !== "nothing") this.shared.set(keys.workflow, keys as DataKeys);
  }
}
