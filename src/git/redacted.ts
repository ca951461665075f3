import type { ObjectId } from "../core/ids.js";
import { type WithheldReason, withheldJson } from "../core/withheld.js";
import { canonicalText } from "../objects/canonical.js";
import { decodeCommit, encodeCommit } from "../objects/commit.js";
import { hashObject } from "../objects/hash.js";
import { notStored } from "../objects/reader.js";
import { noteOf } from "../objects/sealing.js";
import { decodeTree, encodeTree, type Link, type TreeEntry } from "../objects/tree.js";
import type { CommitRecord, ObjectRecord, StoredObject } from "../storage/port.js";
import type { Repository } from "../store/repository.js";
import type { PackObject } from "./pack.js";

/** How many commits, or objects, one call to the storage reads. */
const BATCH = 500;

/**
 * Makes a history anew without what is withheld: in the place of each object that is erased, elsewhere or sealed stands a blob
 * that says so, and whatever leads to one has a new id. What leads to none keeps its id.
 */
export class RedactedHistory {
  /** What each object, and each commit, has become. */
  private readonly links = new Map<ObjectId, Link>();
  private readonly commits = new Map<ObjectId, ObjectId>();
  /** Placeholders by what they say, so that each is written once. */
  private readonly placeholders = new Map<string, Link>();
  /** How many objects were replaced, by why they are withheld. */
  readonly withheld = new Map<WithheldReason, number>();

  constructor(private readonly repository: Repository) {}

  /** The new id of a commit that was made anew. */
  idOf(commit: ObjectId): ObjectId {
    return this.commits.get(commit) as ObjectId;
  }

  /** Commits with what their trees reach, each object once; parents come before children. */
  async *objects(tips: readonly ObjectId[]): AsyncGenerator<PackObject, void, undefined> {
    const { history, storage, workflow } = this.repository;
    const ids: ObjectId[] = [];
    for await (const node of history.topoWalk(tips)) ids.push(node.id);
    ids.reverse();
    for (let at = 0; at < ids.length; at += BATCH) {
      const records = await storage.readCommits(workflow, ids.slice(at, at + BATCH));
      for (const record of records as CommitRecord[]) yield* this.commit(record);
    }
  }

  private async *commit(record: CommitRecord): AsyncGenerator<PackObject, void, undefined> {
    const inline = new Map(record.inline.map((object) => [object.id, object]));
    const fields = decodeCommit(record.body, record.id);
    yield* this.root(fields.tree, inline);
    const tree = (this.links.get(fields.tree) as Link).id;
    const parents = record.parents.map((id) => this.idOf(id));
    const body = encodeCommit({ ...fields, tree, parents });
    const id = hashObject("commit", body);
    this.commits.set(record.id, id);
    yield { id, type: "commit", body };
  }

  private async *root(
    id: ObjectId,
    inline: ReadonlyMap<ObjectId, StoredObject>,
  ): AsyncGenerator<PackObject, void, undefined> {
    if (this.links.has(id)) return;
    for (const stored of await this.read([id], inline)) yield* this.object(stored, inline);
  }

  /** Makes an object anew after all that it leads to. */

  private async *object(
    stored: StoredObject,
    inline: ReadonlyMap<ObjectId, StoredObject>,
  ): AsyncGenerator<PackObject, void, undefined> {
    const { id, type } = stored;
    const note = noteOf(stored);
    if (note !== null) {
      this.withheld.set(note.reason, (this.withheld.get(note.reason) ?? 0) + 1);
      const text = canonicalText(withheldJson(note));
      let placeholder = this.placeholders.get(text);
      if (placeholder === undefined) {
        const body = Buffer.from(text);
        placeholder = { type: "blob", id: hashObject("blob", body) };
        this.placeholders.set(text, placeholder);
        yield { id: placeholder.id, type: "blob", body };
      }
      this.links.set(id, placeholder);
      return;
    }
    const { body: bytes } = stored as ObjectRecord;
    if (type === "blob") {
      this.links.set(id, { type, id });
      yield { id, type, body: bytes };
      return;
    }
    const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const entries = decodeTree(body, id);
    const absent = [...new Set(entries.map((entry) => entry.id))].filter(
      (one) => !this.links.has(one),
    );
    for (let at = 0; at < absent.length; at += BATCH) {
      for (const one of await this.read(absent.slice(at, at + BATCH), inline)) {
        if (!this.links.has(one.id)) yield* this.object(one, inline);
      }
    }
    const made = encodeTree(
      entries.map(
        ({ name, id: before }): TreeEntry => ({ name, ...(this.links.get(before) as Link) }),
      ),
    );
    const link: Link = { type, id: hashObject(type, made) };
    this.links.set(id, link);
    yield { id: link.id, type, body: made };
  }

  private async read(
    ids: readonly ObjectId[],
    inline: ReadonlyMap<ObjectId, StoredObject>,
  ): Promise<StoredObject[]> {
    const absent = ids.filter((id) => !inline.has(id));
    const { storage, workflow } = this.repository;
    const stored = absent.length === 0 ? [] : await storage.readObjects(workflow, absent);
    return [
      ...ids.flatMap((id) => inline.get(id) ?? []),
      ...stored.map((object, i) => {
        if (object === undefined) throw notStored(absent[i] as ObjectId);
        return object;
      }),
    ];
  }
}
