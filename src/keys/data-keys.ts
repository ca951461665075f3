import { AgstateError } from "../core/errors.js";
import type { ObjectId } from "../core/ids.js";
import { quoteForMessage } from "../core/names.js";
import type { WithheldNote } from "../core/withheld.js";
import type { Keyed } from "../objects/data-policy.js";
import type { RowCipher } from "../objects/pending.js";
import {
  CLOSED,
  type Opener,
  type OwnedText,
  PLAIN_SEAL,
  type Seal,
  SubjectKeysNeeded,
} from "../objects/sealing.js";
import {
  ENCODING,
  type ObjectRecord,
  type PendingRow,
  type StoredObject,
} from "../storage/port.js";
import { unwrapLocally, wrapLocally } from "./local.js";
import {
  keyedDigest,
  newSubjectSeed,
  subjectCipher,
  subjectTag,
  type WorkflowMaterial,
} from "./material.js";
import type { WrappedKey } from "./provider.js";
import { readSubjectRow, subjectRow, subjectRowKey } from "./rows.js";
import { BY_SUBJECT, BY_WORKFLOW, SUBJECT_TAG_BYTES, subjectOfSealed } from "./sealed-form.js";
import type { Siv } from "./siv.js";
import type { WorkflowKeys } from "./workflow-keys.js";

/** What there is of a workflow's keys. */
export type KeyState =
  /** Hashes alone are keyed. */
  | { readonly kind: "hashes"; readonly secret: Uint8Array }
  | { readonly kind: "open"; readonly material: WorkflowMaterial; readonly wrapped: WrappedKey }
  /** The store was opened without the key that it needs. */
  | { readonly kind: "locked"; readonly keyName: string | null }
  | { readonly kind: "destroyed" };

/** Where subjects' keys are kept. */
export interface SubjectRows {
  read(keys: readonly string[]): Promise<readonly PendingRow[]>;
  /** Puts rows, of which the first of each key stays. */
  put(rows: readonly PendingRow[]): Promise<void>;
}

interface SubjectCipher {
  readonly siv: Siv;
  readonly seal: Seal;
}

type SubjectKey = SubjectCipher | "destroyed" | "lost";

/** The keys of a workflow that has some. */
export class DataKeys implements WorkflowKeys, Seal, Opener, RowCipher {
  /** By tag, of those that were met: a few hundred bytes each. */
  private readonly subjects = new Map<string, SubjectKey>();

  constructor(
    readonly workflow: string,
    readonly keyed: Keyed,
    private state: KeyState,
    private readonly rows: SubjectRows,
  ) {}

  get withheld(): "key" | "erased" | null {
    const { kind } = this.state;
    return kind === "locked" ? "key" : kind === "destroyed" ? "erased" : null;
  }

  digest(text: string): ObjectId {
    const { state } = this;
    const secret = state.kind === "hashes" ? state.secret : this.material().secret;
    return keyedDigest(secret, text);
  }

  get sealing(): { readonly seal: Seal; readonly opener: Opener } {
    return { seal: this.keyed === "payloads" ? this : PLAIN_SEAL, opener: this };
  }

  /** @throws AgstateError `KEY_UNAVAILABLE`, `ERASED` */
  seal(text: string): { body: Buffer; encoding: number } {
    const { blobs } = this.material();
    return sealed([Buffer.of(BY_WORKFLOW), blobs.seal(Buffer.from(text))]);
  }

  /** @throws AgstateError `KEY_UNAVAILABLE`, `ERASED` */
  of(owner: string): Seal | null {
    const key = this.subjects.get(this.tagOf(owner));
    if (key === undefined) return null;
    if (key === "destroyed") throw subjectErased();
    if (key === "lost") throw subjectLost();
    return key.seal;
  }

  /** Loads the keys of subjects of which objects are about to be opened. */
  async prepare(records: readonly StoredObject[]): Promise<void> {
    if (this.state.kind !== "open") return;
    const tags = new Set<string>();
    for (const record of records) {
      if ("tombstone" in record || record.encoding !== ENCODING.encrypted) continue;
      const tag = subjectOfSealed(record.body);
      if (tag !== null && !this.subjects.has(tag)) tags.add(tag);
    }
    if (tags.size > 0) await this.load(tags);
  }

  /**
   * Opens what was sealed.
   *
   * @throws AgstateError `CORRUPT_OBJECT`, `UNSUPPORTED_ENCODING`
   */
  open(record: ObjectRecord): string | OwnedText | WithheldNote {
    const { id, body, encoding } = record;
    const { state } = this;
    if (encoding !== ENCODING.encrypted) {
      // A pointer whose region was not asked, as what is there could not be opened.
      const note = CLOSED.open(record) as WithheldNote;
      return this.withheld === null ? note : { ...note, reason: this.withheld };
    }
    if (state.kind !== "open") return { reason: this.withheld ?? "key" };
    const [kind] = body;
    if (kind === BY_WORKFLOW) return opened(state.material.blobs, body.subarray(1), id);
    const tag = subjectOfSealed(body);
    if (tag !== null) {
      const key = this.subjects.get(tag) ?? "lost";
      if (typeof key === "string") return { reason: key === "lost" ? "key" : "erased" };
      const text = opened(key.siv, body.subarray(1 + SUBJECT_TAG_BYTES), id);
      return { text, seal: key.seal };
    }
    throw new AgstateError(
      "UNSUPPORTED_ENCODING",
      `object ${id} is encrypted in form ${kind}, which this version does not know; use a newer agstate`,
      { id, form: kind },
    );
  }

  get rowCipher(): RowCipher | undefined {
    return this.keyed === "payloads" ? this : undefined;
  }

  sealRow(plain: Uint8Array): Uint8Array {
    return this.material().rows.seal(plain);
  }

  openRow(sealed: Uint8Array): Uint8Array | null {
    return this.material().rows.open(sealed);
  }

  /** Makes sure that subjects' keys are at hand: reads them, and makes those that there never were. */
  async ensureSubjects(subjects: readonly string[]): Promise<void> {
    const made = this.newSubjects(subjects, await this.absent(subjects));
    if (made.length === 0) return;
    await this.rows.put(made);
    // Somebody else may have been first: what is stored counts, or what is sealed could never be opened.
    await this.load(new Set(made.map((row) => readSubjectRow(row).tag)));
  }

  async encoding<T>(work: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (!(error instanceof SubjectKeysNeeded)) throw error;
        await this.ensureSubjects(error.subjects);
      }
    }
  }

  /** The same for a workflow that is not there yet: keys of subjects are made, and their rows are to be written with it. */
  encodingFirst<T>(work: () => T, made: PendingRow[]): T {
    for (;;) {
      try {
        return work();
      } catch (error) {
        if (!(error instanceof SubjectKeysNeeded)) throw error;
        const { subjects } = error;
        const rows = this.newSubjects(subjects, new Set(subjects.map((name) => this.tagOf(name))));
        this.take(rows);
        made.push(...rows);
      }
    }
  }

  /** What a subject's key row is called. */
  tagOf(subject: string): string {
    return subjectTag(this.material().secret, subject);
  }

  /** Whether this very wrapped key is the one that is open. */
  hasUnwrapped({ wrapped }: WrappedKey): boolean {
    return this.state.kind === "open" && Buffer.compare(this.state.wrapped.wrapped, wrapped) === 0;
  }

  /** Becomes what there is of the keys now. */
  become(state: KeyState): void {
    this.state = state;
    // Who reads at this moment has their keys loaded: they are not taken away while they are good.
    if (state.kind !== "open") this.subjects.clear();
  }

  /** Forgets the key of a subject that was destroyed, or, without one, all keys. */
  forget(tag: string | null): void {
    if (tag !== null) return void this.subjects.set(tag, "destroyed");
    this.become({ kind: "destroyed" });
  }

  private async absent(subjects: readonly string[]): Promise<Set<string>> {
    const unknown = new Set(subjects.map((name) => this.tagOf(name)));
    for (const tag of unknown) {
      const known = this.subjects.get(tag);
      if (known !== undefined && known !== "lost") unknown.delete(tag);
    }
    if (unknown.size > 0) await this.load(unknown);
    for (const tag of unknown) if (this.subjects.get(tag) !== "lost") unknown.delete(tag);
    return unknown;
  }

  private newSubjects(subjects: readonly string[], absent: Set<string>): PendingRow[] {
    const { wrapping } = this.material();
    const tags = new Set(subjects.map((name) => this.tagOf(name)).filter((tag) => absent.has(tag)));
    return [...tags].map((tag) =>
      subjectRow(tag, wrapLocally(wrapping, newSubjectSeed(), subjectRowKey(tag))),
    );
  }

  private async load(tags: ReadonlySet<string>): Promise<void> {
    const rows = await this.rows.read([...tags].map(subjectRowKey));
    for (const tag of tags) this.subjects.set(tag, "lost");
    this.take(rows);
  }

  private take(rows: readonly PendingRow[]): void {
    const { wrapping } = this.material();
    for (const row of rows) {
      const { tag, wrapped } = readSubjectRow(row);
      const seed = wrapped && unwrapLocally(wrapping, wrapped, row.key);
      if (wrapped !== null && seed === null) throw notOfThisWorkflow(row);
      this.subjects.set(tag, seed === null ? "destroyed" : cipherOf(this.workflow, tag, seed));
    }
  }

  private material(): WorkflowMaterial {
    const { state } = this;
    if (state.kind === "open") return state.material;
    if (state.kind === "destroyed") {
      throw new AgstateError(
        "ERASED",
        `the key of workflow ${quoteForMessage(this.workflow)} was destroyed: what it encrypted is gone, and nothing can be added; create another workflow`,
        { workflow: this.workflow },
      );
    }
    const keyName = state.kind === "locked" ? state.keyName : null;
    const named =
      keyName === null ? "its key, which is missing" : `key ${quoteForMessage(keyName)}`;
    throw new AgstateError(
      "KEY_UNAVAILABLE",
      `workflow ${quoteForMessage(this.workflow)} needs ${named}: open the store with keys (--keys, AGSTATE_KEYS)`,
      { workflow: this.workflow, keyName },
    );
  }
}

function cipherOf(workflow: string, tag: string, seed: Uint8Array): SubjectCipher {
  const siv = subjectCipher(workflow, tag, seed);
  const head = Buffer.concat([Buffer.of(BY_SUBJECT), Buffer.from(tag, "hex")]);
  return { siv, seal: { seal: (text) => sealed([head, siv.seal(Buffer.from(text))]) } };
}

function sealed(parts: readonly Uint8Array[]): { body: Buffer; encoding: number } {
  return { body: Buffer.concat(parts), encoding: ENCODING.encrypted };
}

function opened(cipher: Siv, body: Uint8Array, id: ObjectId): string {
  const plain = cipher.open(body);
  if (plain !== null) return Buffer.from(plain.buffer, plain.byteOffset, plain.length).toString();
  throw new AgstateError(
    "CORRUPT_OBJECT",
    `object ${id} does not open with the workflow's key: it was changed, or comes from another workflow`,
    { id },
  );
}

function notOfThisWorkflow(row: PendingRow): AgstateError {
  return new AgstateError(
    "CORRUPT_OBJECT",
    `the pending row ${quoteForMessage(row.key)} does not open with the workflow's key: it was changed, or comes from another workflow`,
    { key: row.key },
  );
}

function subjectErased(): AgstateError {
  return new AgstateError(
    "ERASED",
    "the key of a subject whose data is to be written was destroyed, so that it stays erased; write of it under another name, or leave it out",
    {},
  );
}

function subjectLost(): AgstateError {
  return new AgstateError(
    "KEY_UNAVAILABLE",
    "the key of a subject whose data is to be written is lost; restore a backup",
    {},
  );
}
