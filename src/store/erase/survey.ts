import { isAgstateError } from "../../core/errors.js";
import type { ObjectId } from "../../core/ids.js";
import { decodeCommit } from "../../objects/commit.js";
import { loadCommit, ROOT_PARTS } from "../../objects/commit-reader.js";
import { openPending } from "../../objects/pending.js";
import { readNode } from "../../objects/sequence.js";
import { treeKind } from "../../objects/tree-kind.js";
import type { CommitRecord, PendingRow, RefRow, StoredObject } from "../../storage/port.js";
import type { Repository } from "../repository.js";
import { Found } from "./found.js";
import { Locator } from "./locate.js";
import type { Needles } from "./needles.js";
import type { PartPaths } from "./paths.js";
import { residueOf } from "./residue.js";
import { stepBelongsTo } from "./subjects.js";
import type { Residue } from "./types.js";

/** How many rows one scan reads. */
const PAGE = 500;
/** How many entries of a log one call reads. */
const LOG_PAGE = 1000;

/** What is looked for. */
export interface Sought {
  readonly paths: PartPaths;
  /** The tag that steps bear that belong to the subject. */
  readonly stepTag: string | null;
  /** Texts that are known before anything is read: the subject. */
  readonly texts: readonly string[];
  /** Objects that go whatever is in them. */
  readonly objects: ReadonlySet<string>;
}

/** Where in a workflow it is. */
export interface Survey {
  readonly found: Found;
  /** Which of them commits' rows hold. */
  readonly inline: ReadonlyMap<ObjectId, readonly ObjectId[]>;
  /** The sizes of those that are stored by themselves, in bytes. */
  readonly stored: ReadonlyMap<ObjectId, number>;
  readonly pending: readonly { readonly key: string; readonly index: number }[];
  readonly residue: readonly Residue[];
  readonly unread: number;
}

/** Rows that belong to a workflow's keys and to other workflows' homes: nothing of LangGraph's begins so. */
export const OTHER_ROWS = /^(?:keys|payloads)\//;

/** What a row says that cannot be looked into. */
const CLOSED_ROW = [
  "UNSUPPORTED_ENCODING",
  "CORRUPT_OBJECT",
  "KEY_UNAVAILABLE",
  "ERASED",
  "WITHHELD",
] as const;

/**
 * Looks through all that a workflow holds, whether anything leads there or not: for what stands at paths, in every commit,
 * and then for copies of its strings, in every object, row, log and name. It holds the ids of the trees of long
 * texts and of what it finds.
 *
 * @param needles strings to look for, which grow by those that are found at the paths
 * @throws AgstateError `MISSING_OBJECT`, `CORRUPT_OBJECT`
 */
export async function survey(
  repository: Repository,
  sought: Sought,
  needles: Needles,
): Promise<Survey> {
  return new Surveyor(repository, sought, needles).run();
}

class Surveyor {
  readonly #found = new Found();
  readonly #texts: ObjectId[] = [];
  readonly #inline = new Map<ObjectId, ObjectId[]>();
  readonly #stored = new Map<ObjectId, number>();
  readonly #pending: { key: string; index: number }[] = [];
  readonly #residue: Residue[] = [];
  #unread = 0;

  constructor(
    private readonly repository: Repository,
    private readonly sought: Sought,
    private readonly needles: Needles,
  ) {}

  async run(): Promise<Survey> {
    const { storage, workflow } = this.repository;
    for (const text of this.sought.texts) this.needles.add(text);
    await this.#locate();
    const scan = <Row>(read: (after: string | null) => Promise<Page<Row>>) => pages(read);
    const objects = async (after: string | null) => {
      const page = await storage.scanObjects(workflow, after, PAGE);
      await this.repository.objects.opener.prepare?.(page.rows);
      return page;
    };
    for await (const object of scan(objects)) {
      this.#object(object);
      if ("body" in object && this.#found.has(object.id))
        this.#stored.set(object.id, object.body.length);
    }
    for (const id of this.#texts) await this.#text(id);
    // What a commit's row holds may be found in another's, too.
    for await (const commit of scan((after) => storage.scanCommits(workflow, after, PAGE)))
      for (const object of commit.inline) this.#object(object);
    for await (const commit of scan((after) => storage.scanCommits(workflow, after, PAGE)))
      this.#commit(commit);
    for await (const row of scan((after) => storage.scanPending(workflow, after, PAGE)))
      this.#row(row);
    for (const ref of await storage.readRefs(workflow, { prefix: "refs/", deleted: true }))
      await this.#ref(ref);
    if (this.needles.within(workflow)) this.#residue.push(residueOf("workflow-id", workflow));
    return {
      found: this.#found,
      inline: this.#inline,
      stored: this.#stored,
      pending: this.#pending,
      residue: this.#residue,
      unread: this.#unread,
    };
  }

  /** Finds what stands at the paths, in each version that there is. */
  async #locate(): Promise<void> {
    const { paths, stepTag } = this.sought;
    if (paths.size === 0 && stepTag === null) return;
    const { storage, workflow, objects } = this.repository;
    const locator = new Locator(objects, this.#found, this.needles);
    for await (const record of pages((after) => storage.scanCommits(workflow, after, PAGE))) {
      const commit = loadCommit(record, objects.opener);
      for (const part of ROOT_PARTS) {
        const link = commit.root[part];
        const at = paths.get(part);
        if (link === undefined) continue;
        if (at !== undefined) locator.begin(link, at, commit.inline.get(link.id));
        if (part === "step" && stepTag !== null) {
          const theirs = await stepBelongsTo(objects.with(commit.inline), link, stepTag);
          if (theirs) locator.take(link, commit.inline.get(link.id));
        }
      }
      await locator.finish();
    }
    this.#unread += locator.unread;
  }

  #object(stored: StoredObject): void {
    if ("tombstone" in stored) return;
    const { id, type } = stored;
    if (this.sought.objects.has(id)) this.#found.add(id, type, "listed");
    const object = this.repository.objects.decode(stored);
    if (object.type === "opaque") this.#unread++;
    else if (object.type === "blob") {
      if (this.needles.withinBlob(object.text)) this.#found.add(id, type, "copy");
    } else {
      const kind = treeKind(object.entries);
      if (kind === "text") this.#texts.push(id);
      else if (object.entries.some(({ name }) => this.needles.withinName(name)))
        this.#found.add(id, type, "key");
    }
  }

  /** A copy may go over from one piece of a long text to the next. */
  async #text(id: ObjectId): Promise<void> {
    if (this.needles.size === 0) return;
    const { objects } = this.repository;
    const pieces: { id: ObjectId; at: number; end: number }[] = [];
    let text = "";
    const append = async (tree: ObjectId): Promise<boolean> => {
      const node = await objects.read(tree);
      if (node.type !== "tree") return false;
      for (const entry of readNode(node.entries, tree)) {
        if (entry.kind === "n") {
          if (!(await append(entry.id))) return false;
          continue;
        }
        const piece = await objects.read(entry.id);
        // Where a piece is gone, so is what went over its edges.
        const said = piece.type === "blob" ? piece.text : "\0".repeat(entry.count);
        pieces.push({ id: entry.id, at: text.length, end: text.length + said.length });
        text += said;
      }
      return true;
    };
    if (!(await append(id))) return;
    for (const [from, to] of this.needles.matches(text)) {
      for (const piece of pieces) {
        if (piece.at >= to || from >= piece.end) continue;
        this.#found.add(piece.id, "blob", "copy");
        this.#stored.set(piece.id, Buffer.byteLength(text.slice(piece.at, piece.end)));
      }
    }
  }

  #commit(record: CommitRecord): void {
    const held = record.inline.filter((object) => "body" in object && this.#found.has(object.id));
    if (held.length > 0) {
      this.#inline.set(
        record.id,
        held.map(({ id }) => id),
      );
    }
    if (this.needles.size === 0) return;
    const { author, committer, message, externalId, trace } = decodeCommit(record.body, record.id);
    const hold = (...texts: (string | undefined)[]) =>
      texts.some((text) => text !== undefined && this.needles.within(text));
    if (hold(message)) this.#residue.push(residueOf("message", record.id));
    if (hold(author, committer)) this.#residue.push(residueOf("author", record.id));
    if (hold(externalId)) this.#residue.push(residueOf("external-id", record.id));
    if (hold(trace)) this.#residue.push(residueOf("trace", record.id));
  }

  #row(row: PendingRow): void {
    const { key, index } = row;
    if (OTHER_ROWS.test(key)) return;
    const cipher = this.repository.keys.rowCipher;
    try {
      if (!this.needles.within(key) && !this.needles.withinValue(openPending(row, cipher))) return;
      this.#pending.push({ key, index });
    } catch (error) {
      if (!isAgstateError(error, ...CLOSED_ROW)) throw error;
      this.#unread++;
    }
  }

  async #ref(ref: RefRow): Promise<void> {
    if (this.needles.size === 0) return;
    const { storage, workflow } = this.repository;
    if (this.needles.within(ref.name)) this.#residue.push(residueOf("ref-name", ref.name));
    for (let fromSeq = ref.seq; fromSeq > 0; ) {
      const page = await storage.readReflog(workflow, ref.name, { limit: LOG_PAGE, fromSeq });
      for (const { actor, reason, trace, seq } of page) {
        if ([actor, reason, trace].some((text) => this.needles.within(text)))
          this.#residue.push(residueOf("log", `${ref.name}@{${seq}}`));
      }
      const last = page.at(-1);
      if (last === undefined) return;
      fromSeq = last.seq - 1;
    }
  }
}

interface Page<Row> {
  readonly rows: readonly Row[];
  readonly next: string | null;
}

async function* pages<Row>(
  read: (after: string | null) => Promise<Page<Row>>,
): AsyncGenerator<Row, void, undefined> {
  for (let after: string | null = null; ; ) {
    const page = await read(after);
    yield* page.rows;
    after = page.next;
    if (after === null) return;
  }
}
