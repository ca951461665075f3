/**
 * The one storage interface: what agstate asks of a backend.
 *
 * A backend knows ids and bytes, not JSON. Everything belongs to a workflow;
 * no call crosses workflows except the catalogue's.
 *
 * Isolation: every call sees one committed snapshot. Atomicity: a `write` is
 * one transaction; of each atomic batch all moves happen or none. Ordering:
 * writes are serialisable, and a call that begins after another call's answer
 * sees everything that answer told of, from any process. Durability: when
 * `write` answers, what it tells of survives a power loss (the memory model
 * excepted, which lives as long as its process).
 */
import type { ObjectId } from "../core/ids.js";
import type { ReflogEntry } from "../core/reflog-entry.js";
import type { Span, Telemetry } from "../core/telemetry.js";

export type ObjectType = "blob" | "tree";

/**
 * How a body is to be read. 0: as the value's own bytes. 1: as a pointer to another region. 2: as ciphertext. 255: as the
 * tombstone of an object in a commit's row, where there is no row kind. The bytes hash to the id in all cases but the last;
 * a reader that meets a number it does not know refuses the object, never guesses.
 */
export const ENCODING = { plain: 0, pointer: 1, encrypted: 2, tombstone: 255 } as const;

/** An immutable object: its id is the hash of type, size and body. */
export interface ObjectRecord {
  readonly id: ObjectId;
  readonly type: ObjectType;
  readonly body: Uint8Array;
  /** One of {@link ENCODING}; absent means plain. */
  readonly encoding?: number;
  /** Of a sealed blob that is on its way to the store: its text. No backend stores it, or is given it. */
  readonly clear?: string | undefined;
  /** Of a pointer that is on its way to the store: what it stands for. No backend stores it, or is given it. */
  readonly foreign?: ForeignPayloadText | undefined;
}

/** A payload that belongs to another region, with where it belongs. */
export interface ForeignPayloadText {
  readonly region: string;
  /** The keyed hash by which pointer and payload know each other. */
  readonly hash: string;
  /** The payload's canonical text. */
  readonly text: string;
  /** The same under the workflow's key, in base64; then this is what is stored. */
  readonly sealed?: string | undefined;
}

/** What stands in the place of an erased object: its id stays, its bytes are gone. */
export interface TombstoneRecord {
  readonly id: ObjectId;
  readonly type: ObjectType;
  /** Who erased it, when and why, as opaque bytes. */
  readonly tombstone: Uint8Array;
}

export type StoredObject = ObjectRecord | TombstoneRecord;

/**
 * A commit with its graph columns, and the objects reached only through it
 * (its root tree, its small step record), which live in its row.
 */
export interface CommitRecord {
  readonly id: ObjectId;
  /** The exact body of the Git commit object. */
  readonly body: Uint8Array;
  readonly parents: readonly ObjectId[];
  /** 1 for a root, else one more than the greatest of its parents. */
  readonly generation: number;
  /** Committer date in whole seconds. */
  readonly time: number;
  /** A foreign system's id of this commit, found through an index. */
  readonly externalId: string | null;
  readonly inline: readonly StoredObject[];
}

/** A commit's place in the history, without its contents. */
export interface GraphNode {
  readonly id: ObjectId;
  readonly parents: readonly ObjectId[];
  readonly generation: number;
  readonly time: number;
}

/**
 * Graph nodes one after the other: generation, time and number of parents in decimal digits, as
 * many as {@link PACKED_GRAPH_DIGITS} says; then the raw id, and the parents' raw ids.
 *
 * Decoding a node this way costs a tenth of making the objects and the hex of a `GraphNode`.
 */
export type PackedGraph = Uint8Array;

/** How many digits each number of a packed node takes: together a multiple of 4, so that ids are aligned. */
export const PACKED_GRAPH_DIGITS = { generation: 10, time: 12, parents: 6 } as const;

/** A ref as stored. A deleted ref keeps its row, with `id` null, so that `seq`, log and steps go on. */
export interface RefRow {
  readonly name: string;
  readonly id: ObjectId | null;
  /** Number of the last log entry of this name. */
  readonly seq: number;
  /** Hash of the last log entry. */
  readonly logHash: ObjectId;
  /** 32 hex digits, drawn anew at each creation. */
  readonly incarnation: string;
  /** The highest step number ever given on this name; never goes down. */
  readonly maxStep: number;
}

/**
 * What must hold of the ref for a move to happen: anything, that it is absent,
 * or that it is this id. With `seq`, its last log entry must have this number as
 * well: a ref that moved away and came back is then not taken for one that
 * never moved.
 */
export type Expectation =
  | { readonly kind: "any" }
  | { readonly kind: "absent" }
  | { readonly kind: "id"; readonly id: ObjectId; readonly seq?: number };

/** Whether a ref meets an expectation: `head` is its id, null when it is absent or deleted. */
export function meets(expect: Expectation, head: ObjectId | null, seq: number): boolean {
  switch (expect.kind) {
    case "any":
      return true;
    case "absent":
      return head === null;
    case "id":
      return head === expect.id && (expect.seq === undefined || expect.seq === seq);
  }
}

/** A compare-and-swap of one ref. */
export interface RefMove {
  readonly ref: string;
  readonly expect: Expectation;
  /** The commit to point to; null deletes the ref. Must be stored already or be in `commits`. */
  readonly target: ObjectId | null;
  /** The incarnation to take if this move creates the ref (it is absent or deleted). */
  readonly incarnation: string;
  /** The highest step number that this move gives; the row keeps the greater of this and its own. */
  readonly maxStep: number;
  /** Commits that exist only if this move happens, parents before children. */
  readonly commits: readonly CommitRecord[];
  readonly log: {
    readonly actor: string;
    readonly reason: string;
    readonly time: number;
    readonly trace: string;
  };
}

export interface WorkflowRecord {
  readonly id: string;
  readonly classification: "public" | "internal" | "sensitive" | "regulated";
  readonly storageRegion: string | null;
  readonly retentionPolicy: string | null;
  /** The isolation policy as canonical text; opaque here. */
  readonly isolation: string;
  /** Milliseconds since the Unix epoch. */
  readonly createdAt: number;
  /** Milliseconds since the Unix epoch; null while the workflow is open, as it is when it is created. */
  readonly completedAt: number | null;
}

/** What of a workflow's declaration may change. */
export type Redeclared = Pick<WorkflowRecord, "classification" | "retentionPolicy">;

/** Where branches are: in a completed workflow none of these moves to a commit. */
export const BRANCHES = "refs/heads/";

/**
 * What somebody wrote beside the history and no commit holds yet: bytes under a key and an index. It is neither an
 * object nor reached from anywhere: it stays, whatever is collected, until it is dropped.
 */
export interface PendingRow {
  /** Of 1 to 1,024 bytes of UTF-8, without U+0000. */
  readonly key: string;
  /** A whole number of 32 bits with its sign. */
  readonly index: number;
  readonly body: Uint8Array;
}

/**
 * Objects, commits, ref moves and pending rows of one workflow, landing in one transaction.
 *
 * At most one move a ref. Objects are stored when at least one move happens.
 * Objects are in any order; what they refer to is either in the batch or
 * reachable from a commit that a move builds on or the batch needs. All of these
 * are held against collection until the batch has landed: the write locks and
 * freshens them.
 */
export interface WriteBatch {
  readonly workflow: string;
  /** Creates the workflow; the whole batch is refused if it exists. */
  readonly create?: WorkflowRecord | undefined;
  /**
   * Completes the workflow, if the moves of the batch, which must be atomic, happen: from then on no branch
   * moves to a commit. Milliseconds since the Unix epoch.
   */
  readonly complete?: number | undefined;
  readonly objects: readonly ObjectRecord[];
  /**
   * Commits that must be stored beside those that the moves build on, because the batch refers to
   * objects of theirs without sending them; each that is not makes every move `missing`.
   */
  readonly needs?: readonly ObjectId[] | undefined;
  readonly moves: readonly RefMove[];
  /** All moves or none; without it each move is judged alone. */
  readonly atomic: boolean;
  /** Drops all pending rows whose key begins with one of these, before any is put; whether or not moves happen. */
  readonly dropPending?: readonly string[] | undefined;
  /**
   * Puts pending rows, whether or not moves happen. A row of an index below 0 replaces the one that is there;
   * of any other index the first stays.
   */
  readonly pending?: readonly PendingRow[] | undefined;
  /** What tells of the commits in it, to which a call that brings several batches is linked; no backend stores it. */
  readonly spans?: readonly Span[] | undefined;
}

export type MoveAnswer =
  /** The ref moved; `row` is the ref after the move. */
  | { readonly outcome: "moved"; readonly row: RefRow }
  /** The move's target is a commit of this batch that is stored already: this very batch landed before. */
  | { readonly outcome: "landed"; readonly row: RefRow | null }
  /** The expectation did not hold; `actual` is the ref's row (deleted: id null), null if never seen. */
  | { readonly outcome: "conflict"; readonly actual: RefRow | null }
  /** The target, a parent of a commit in the move, or a commit that the batch needs is not stored. */
  | { readonly outcome: "missing"; readonly ids: readonly ObjectId[] }
  /** The workflow is completed, and the move is of a branch to a commit. */
  | { readonly outcome: "closed" }
  /** Another move of the same atomic batch was refused, or the workflow was. */
  | { readonly outcome: "skipped" };

export interface WriteAnswer {
  /** `exists`: creation refused. `missing`: no such workflow. In both cases nothing was written. */
  readonly workflow: "ok" | "created" | "exists" | "missing";
  /** One answer a move, in the order of the batch. */
  readonly moves: readonly MoveAnswer[];
}

/** A ref, and the commit that it points to. */
export interface Head {
  readonly row: RefRow;
  readonly commit: CommitRecord | undefined;
}

/** Which refs to read: exact names, or all whose name begins with a prefix. */
export type RefPattern =
  | { readonly names: readonly string[] }
  | { readonly prefix: string; readonly deleted?: boolean };

/** A log entry with the hash that the next entry, or the ref row, must hold. */
export interface StoredReflogEntry extends ReflogEntry {
  /** The hash as the store tells it: the `previous` of the entry after, or the row's `logHash`. */
  readonly hash: ObjectId;
}

/** Somebody who is being woken. */
export interface Watch {
  /** Ends the waking: no wake begins after the call. Calling it again does nothing, nor does it after `Storage.close`. */
  close(): Promise<void>;
}

/** Whether anything moved, so that whoever watches has something to read. */
export function hasMoved({ moves }: WriteAnswer): boolean {
  return moves.some(({ outcome }) => outcome === "moved");
}

/** Where {@link Storage.readBelow} begins, and how far it goes. */
export interface BelowRequest {
  /** Objects to begin with. */
  readonly ids?: readonly ObjectId[];
  /** Commits to answer as well, and which entries of their root trees to begin with. */
  readonly commits?: readonly ObjectId[];
  readonly entries?: readonly string[];
  /**
   * In place of `commits`: a commit and its first parents, children before parents, so many at most. The line
   * ends where a commit is not stored.
   */
  readonly line?: { readonly from: ObjectId; readonly commits: number } | undefined;
  /** Objects that the caller has: they are not answered, nor is what only they lead to. */
  readonly known?: readonly ObjectId[];
  /** The most objects, and the most bytes of bodies, in the answer; commits and what is in their rows do not count. */
  readonly maxObjects: number;
  readonly maxBytes: number;
}

/** What {@link Storage.readBelow} found. */
export interface Below {
  readonly commits: readonly CommitRecord[];
  readonly objects: readonly StoredObject[];
}

/** A server that follows another, as far as it has come: what is read there may be old. */
export interface Replica {
  /** When the last transaction that it has applied was committed, by the primary's clock; null when there was none since it started. */
  readonly appliedAt: Date | null;
  /** How far it has applied the primary's write-ahead log, as the server writes it: whatever is read next is at least as new. */
  readonly position: string;
  /**
   * 0 when it has applied all that it knows the primary to have written; else the age of the last transaction that it has
   * applied, which is the most that it can be behind. Null when nobody knows: nothing reaches it from the primary.
   */
  readonly behindMs: number | null;
}

export interface StoreDescription {
  readonly backend: string;
  readonly location: string;
  readonly schemaVersion: number;
  /** Random, drawn once when the store is made. */
  readonly storeId: string;
  /** The region that this store stands in, null when none was declared. */
  readonly region: string | null;
  /** Set where a replica is read: how far it has come, at the time of the call. */
  readonly replica: Replica | null;
}

export interface Usage {
  readonly commits: number;
  readonly objects: number;
  readonly pending: number;
  /** Bytes of bodies: of objects, commits, inlined ones included, and pending rows. */
  readonly bytes: number;
}

/** What compaction did: the bytes of the store's files, or of its tables and their indexes on a server. */
export interface Compacted {
  readonly bytesBefore: number;
  readonly bytesAfter: number;
}

/** A page of a scan, in storage order. */
export interface ScanPage<Row> {
  readonly rows: readonly Row[];
  /** Give it to the next call; null at the end. */
  readonly next: string | null;
}

/** A row as collection sees it. */
export interface SeenRow {
  readonly id: ObjectId;
  readonly type: ObjectType | "commit";
  /** Of a commit; 0 for an object. */
  readonly generation: number;
  /** When it was last written or freshened, in seconds; 0 when it is condemned. */
  readonly seenAt: number;
  /** What the row holds, in bytes of bodies. */
  readonly bytes: number;
  /** Whether it is a tombstone. */
  readonly erased: boolean;
}

/** What a sweep did. */
export interface Swept {
  readonly removed: number;
  /** Those that are not condemned by this collection any more, as a write has referred to them. */
  readonly spared: readonly ObjectId[];
}

/** What is taken out of a workflow's rows in place: nothing else ever changes them. */
export interface Redaction {
  /** Objects whose bytes go; their rows become tombstones. Ids that are not stored are passed over. */
  readonly tombstones: readonly TombstoneRecord[];
  /** Commits whose rows hold some of these: the copies there become tombstones too. */
  readonly inline: readonly ObjectId[];
  /**
   * Commits below which history is dropped: of the parents in their rows these remain. Their bodies keep telling
   * all. A log entry that was kept with such a commit is kept on its own.
   */
  readonly grafts: readonly { readonly id: ObjectId; readonly parents: readonly ObjectId[] }[];
  /**
   * Only what this collection has condemned, and no write freshened nor another collection condemned since, becomes
   * a tombstone: rows of objects, and copies in rows of commits. Absent: whatever is named.
   */
  readonly condemnedBy?: number | undefined;
  /** Pending rows that go, each by its key and index. */
  readonly pending?: readonly { readonly key: string; readonly index: number }[] | undefined;
}

/** How much a redaction changed. */
export interface Redacted {
  /** Rows of objects that became tombstones. */
  readonly objects: number;
  /** Copies in commits' rows that became tombstones. */
  readonly inline: number;
  readonly grafts: number;
  readonly pending: number;
  /** Bytes of bodies that went. */
  readonly bytes: number;
}

/** Counts and names of what a scan found wrong with the rows themselves, as a backend sees it. */
export interface StructureProblem {
  readonly what: string;
  readonly detail: string;
}

export interface Storage {
  /**
   * Lands a batch in one transaction and, on a server, one round trip.
   *
   * Expected refusals are in the answer. Writing an object that is stored
   * freshens it; if the stored copy differs from the bytes given, it is
   * replaced, so that a write never reports success over a bad copy.
   *
   * @throws AgstateError `STORE_BUSY`, `STORE_FULL`, `STORE_READONLY`, `STORE_DAMAGED`, `STORE_CLOSED`
   */
  write(batch: WriteBatch): Promise<WriteAnswer>;

  /** Reads objects by id; the answer has the order of `ids`, undefined where none is stored. */
  readObjects(workflow: string, ids: readonly ObjectId[]): Promise<(StoredObject | undefined)[]>;

  /**
   * Reads, in one round trip, objects and what they refer to, transitively: each once, a level of
   * trees after the other, up to the limits of the request. Only trees of plain encoding are gone
   * into. It is a hint: what is not stored, damaged or beyond the limits is left out, and
   * `readObjects` and `readCommits` tell of it. A backend to which a call costs little does not have this.
   */
  readBelow?(workflow: string, request: BelowRequest): Promise<Below>;

  /** Reads commits by id; the answer has the order of `ids`, undefined where none is stored. */
  readCommits(workflow: string, ids: readonly ObjectId[]): Promise<(CommitRecord | undefined)[]>;

  /** Reads refs, sorted by name (bytes of UTF-8). Deleted refs only when asked by name or with `deleted`. */
  readRefs(workflow: string, pattern: RefPattern): Promise<RefRow[]>;

  /**
   * Reads a ref and the commit that it points to, in one round trip; undefined when the name was never
   * seen. No commit when the ref is deleted, or its commit is lost.
   */
  readHead(workflow: string, ref: string): Promise<Head | undefined>;

  /**
   * Reads a ref's log, newest entry first: at most `limit` entries with `seq` at most `fromSeq`.
   * An entry that is lost ends the answer early; `fsck` tells of it.
   */
  readReflog(
    workflow: string,
    ref: string,
    options: { limit: number; fromSeq?: number },
  ): Promise<StoredReflogEntry[]>;

  /**
   * Reads the graph below `ids`: each that is stored, then ancestors by falling
   * generation, until `limit` nodes are read. Ids that are not stored are left out.
   */
  readGraph(workflow: string, ids: readonly ObjectId[], limit: number): Promise<GraphNode[]>;

  /**
   * Reads, in one round trip, what of the graph is cheapest to read and likely to be asked for
   * next: those of `ids` that are stored, and at most `limit` commits that stand near the first
   * of them, related or not, in any order. It is a hint for long walks: whatever it leaves out
   * is read by `readGraph`. A backend that has nothing cheaper does not have this.
   */
  readGraphNear?(workflow: string, ids: readonly ObjectId[], limit: number): Promise<PackedGraph>;

  /** Finds at most `limit` stored ids that begin with the hex digits, commits first, each kind sorted. */
  findIds(
    workflow: string,
    prefix: string,
    limit: number,
  ): Promise<{ id: ObjectId; type: ObjectType | "commit" }[]>;

  /** Finds the commits with this external id, oldest first. */
  findExternal(workflow: string, externalId: string): Promise<ObjectId[]>;

  /**
   * Reads the pending rows whose key begins with one of the prefixes, of which none begins with another,
   * sorted by key (bytes of UTF-8), then by index.
   */
  readPending(workflow: string, prefixes: readonly string[]): Promise<PendingRow[]>;

  /** Reads workflows of the catalogue in the order of their ids (bytes of UTF-8), those after `after`. */
  readWorkflows(options: { after?: string; limit: number }): Promise<WorkflowRecord[]>;

  readWorkflow(id: string): Promise<WorkflowRecord | undefined>;

  /** Goes through all objects of a workflow, for fsck and export. */
  scanObjects(
    workflow: string,
    after: string | null,
    limit: number,
  ): Promise<ScanPage<StoredObject>>;

  /** Goes through all commits of a workflow, for fsck and export. */
  scanCommits(
    workflow: string,
    after: string | null,
    limit: number,
  ): Promise<ScanPage<CommitRecord>>;

  /** Goes through all pending rows of a workflow in the order of `readPending`, for fsck. */
  scanPending(workflow: string, after: string | null, limit: number): Promise<ScanPage<PendingRow>>;

  /**
   * Goes through the rows of one kind that were last written or freshened before a moment (seconds), for
   * collection, in storage order and without their bodies.
   */
  scanSeen(
    workflow: string,
    type: ObjectType | "commit",
    before: number,
    after: string | null,
    limit: number,
  ): Promise<ScanPage<SeenRow>>;

  /**
   * Reads the commits that log entries of the workflow made since a moment (milliseconds) moved a ref
   * away from, as a reset or a deletion does: what the logs alone still hold. Those that were only
   * appended to may be left out. They need not be stored any more.
   */
  readAbandoned(workflow: string, since: number): Promise<ObjectId[]>;

  /**
   * Condemns rows last seen before a moment (seconds): takes away that they were ever seen. A write that
   * refers to a condemned row, by sending the object or by building on the commit, freshens it;
   * a write under way that has referred to it already is waited for. So whatever was condemned and
   * is not reachable from refs read *after* that can be swept, beside any writers. A row is
   * condemned by the last collection to do so. Ids that are not stored are passed over.
   *
   * @param by the collection's own random number, 1 to 2^53 - 1
   */
  condemn(workflow: string, ids: readonly ObjectId[], before: number, by: number): Promise<void>;

  /**
   * Removes rows that the same collection has condemned, and no write freshened nor another collection
   * condemned since, in one transaction; it spares the others. Of commits it
   * removes all or, when one is to be spared, none, since what is below that one must stay. A log
   * entry that was kept with a removed commit is kept on its own.
   */
  sweep(workflow: string, ids: readonly ObjectId[], by: number): Promise<Swept>;

  /**
   * Puts tombstones in the place of objects, drops parents from commits' rows and removes pending rows, in one
   * transaction. Done again, it does nothing. A write that sends an object whose row is a tombstone brings it
   * back, so whoever takes something out for good looks again.
   */
  redact(workflow: string, redaction: Redaction): Promise<Redacted>;

  /** Changes what a workflow's row says of it; answers whether there is such a workflow. Done again, it does nothing. */
  redeclare(workflow: string, declared: Redeclared): Promise<boolean>;

  /**
   * Calls `wake` soon after refs of the workflow may have moved, by this process or another.
   *
   * It is a hint: what moved, if anything did, is found by reading refs and logs. A move that lands
   * after `watch` has answered is followed by a wake; several may share one, and a wake may come
   * without a move. Where a hint can get lost, for example with a connection, the backend wakes when
   * it hears again, and at intervals of seconds in any case. `close` of the storage wakes a last time.
   *
   * `wake` must return at once and not throw. A watch alone does not keep the process alive.
   */
  watch(workflow: string, wake: () => void): Promise<Watch>;

  /** Asks the backend to check its own files; an empty answer means sound. */
  checkStructure(): Promise<StructureProblem[]>;

  usage(workflow: string): Promise<Usage>;

  /**
   * Gives back the space of what is gone, of all workflows, and leaves none of its bytes in the store's files; what
   * is stored stays as it is. Others may have to wait meanwhile, and it waits for them as long as any call.
   *
   * @throws AgstateError `STORE_BUSY` when others use the store all the time, `STORE_FULL`: it needs as much free
   *   space as the store takes when it is compact; `STORE_READONLY`, from a role that may not
   */
  compact(): Promise<Compacted>;

  describe(): Promise<StoreDescription>;

  /**
   * Whether it may be a replica that is read: then `describe` tells. It asks nobody, so that it can be called before whatever is
   * decided; a replica that has become the primary is found out by `describe`. A backend without replicas does not have this.
   */
  mayBeReplica?(): boolean;

  /** Waits for writes under way, then lets go of everything. Calling it again does nothing. */
  close(): Promise<void>;
}

/** What `store.ts` hands to a backend, so that hashing stays in one place. */
export interface BackendOptions {
  /** SHA-256 of the UTF-8 of a text, as 64 hex digits. */
  readonly digest: (text: string) => ObjectId;
  readonly now: () => number;
  /** Random bytes as hex digits, two a byte. */
  readonly randomHex: (bytes: number) => string;
  /** Tells of calls to a database; default nobody. */
  readonly telemetry?: Telemetry | undefined;
}
