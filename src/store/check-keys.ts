import { isAgstateError } from "../core/errors.js";
import type { ObjectId } from "../core/ids.js";
import {
  HASH_SECRET,
  isKeyRow,
  readKeyRows,
  readSubjectRow,
  subjectRowKey,
  WORKFLOW_KEY,
} from "../keys/rows.js";
import { subjectOfSealed } from "../keys/sealed-form.js";
import type { WorkflowKeys } from "../keys/workflow-keys.js";
import {
  ENCODING,
  type ObjectRecord,
  type PendingRow,
  type StoredObject,
} from "../storage/port.js";

/** Looks whether what is encrypted opens, as far as its keys are at hand, and whether the keys that it needs are there. */
export class KeyCheck {
  private readonly rows: PendingRow[] = [];
  /** By tag, an object that each subject's key has sealed. */
  private readonly sealed = new Map<string, ObjectId>();

  constructor(
    private readonly keys: WorkflowKeys,
    private readonly lost: (key: string, detail: string) => void,
  ) {}

  /** Loads the keys of objects that are about to be looked at. */
  async prepare(objects: readonly StoredObject[]): Promise<void> {
    await this.keys.sealing.opener.prepare?.(objects);
  }

  /** @throws AgstateError `CORRUPT_OBJECT`, `UNSUPPORTED_ENCODING` for what does not open */
  open(object: ObjectRecord): void {
    if (object.encoding !== ENCODING.encrypted) return;
    const tag = subjectOfSealed(object.body);
    if (tag !== null && !this.sealed.has(tag)) this.sealed.set(tag, object.id);
    this.keys.sealing.opener.open(object);
  }

  /** Takes in a pending row that is whole. */
  row(row: PendingRow): void {
    if (isKeyRow(row)) this.rows.push(row);
  }

  /** Tells of keys that are lost, and of one that was destroyed and is back. */
  run(): void {
    const { keyed } = this.keys;
    if (keyed === "nothing") return;
    try {
      const { wrapped, secret, destroyed } = readKeyRows(this.rows);
      if (destroyed !== null) {
        if (wrapped !== null) {
          this.lost(WORKFLOW_KEY, "it was destroyed, and is there; agstate keys destroy ends it");
        }
        return;
      }
      if (keyed === "hashes" && secret === null) this.lost(HASH_SECRET, LOST);
      if (keyed === "payloads" && wrapped === null) this.lost(WORKFLOW_KEY, LOST);
      const tags = new Set(this.rows.filter(isSubjectRow).map((row) => readSubjectRow(row).tag));
      for (const [tag, id] of this.sealed) {
        if (!tags.has(tag)) this.lost(subjectRowKey(tag), `${LOST}; object ${id} needs it`);
      }
    } catch (error) {
      if (!isAgstateError(error)) throw error;
      this.lost("keys/", error.message);
    }
  }
}

const LOST = "the key is not there, and it was not destroyed; restore a backup";
const SUBJECT_ROWS = subjectRowKey("");

function isSubjectRow({ key }: PendingRow): boolean {
  return key.startsWith(SUBJECT_ROWS);
}
