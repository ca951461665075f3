import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import type { ObjectId } from "../core/ids.js";
import type {
  CommitRecord,
  Expectation,
  MoveAnswer,
  ObjectRecord,
  ObjectType,
  RefMove,
  RefRow,
  Storage,
  StoredObject,
  TombstoneRecord,
  WorkflowRecord,
  WriteAnswer,
  WriteBatch,
} from "../storage/port.js";

/*
 * What the cases write: real Git objects, so that the suite also runs over a
 * storage that verifies. Hashed here by Node's own crypto, apart from the code
 * under test.
 */

/** SHA-256 of the UTF-8 of a text: what a backend under test is to be given as `digest`. */
export function digest(text: string): ObjectId {
  return createHash("sha256").update(text, "utf8").digest("hex") as ObjectId;
}

/** Random bytes as hex digits: what a backend under test is to be given as `randomHex`. */
export function randomHex(bytes: number): string {
  return randomBytes(bytes).toString("hex");
}

function gitId(type: ObjectType | "commit", body: Uint8Array): ObjectId {
  const hash = createHash("sha256").update(`${type} ${body.length}\0`).update(body);
  return hash.digest("hex") as ObjectId;
}

export function blob(content: string | Uint8Array): ObjectRecord {
  const body = typeof content === "string" ? Buffer.from(content) : content;
  return { id: gitId("blob", body), type: "blob", body };
}

/** A tree with the given objects under the names `0`, `1`, ... */
export function tree(...objects: readonly ObjectRecord[]): ObjectRecord {
  return namedTree(objects.map((object, i) => [`${i}`, object]));
}

function namedTree(members: readonly (readonly [string, ObjectRecord])[]): ObjectRecord {
  const entries = members.map(([name, { id, type }]) =>
    Buffer.concat([
      Buffer.from(`${type === "tree" ? "40000" : "100644"} ${name}\0`),
      Buffer.from(id, "hex"),
    ]),
  );
  return rawTree(Buffer.concat(entries));
}

/** An object of type tree, whatever its body is. */
export function rawTree(body: Uint8Array): ObjectRecord {
  return { id: gitId("tree", body), type: "tree", body };
}

/** A commit whose root tree, in its row, has the given entries; with further objects in the row. */
export function rootedCommit(
  root: Readonly<Record<string, ObjectRecord>>,
  inline: readonly ObjectRecord[] = [],
  parents: readonly CommitRecord[] = [],
): CommitRecord {
  const top = namedTree(Object.entries(root));
  return commit({ tree: top.id, inline: [...inline, top], parents });
}

/** An id under which nothing is stored. */
export function unknownId(): ObjectId {
  return randomHex(32) as ObjectId;
}

export interface CommitOptions {
  readonly parents?: readonly CommitRecord[];
  readonly message?: string;
  /** Committer date in seconds. */
  readonly time?: number;
  readonly externalId?: string | null;
  readonly inline?: readonly ObjectRecord[];
  /** Of its root tree; that of the empty tree when it is not given. */
  readonly tree?: ObjectId;
}

let commitsMade = 0;

/** A commit that differs from every other. */
export function commit(options: CommitOptions = {}): CommitRecord {
  const { parents = [], message = "a message", externalId = null, inline = [] } = options;
  const time = options.time ?? 1_700_000_000 + commitsMade++;
  const who = `ada <ada@w> ${time} +0000`;
  const text =
    `tree ${options.tree ?? tree().id}\n${parents.map(({ id }) => `parent ${id}\n`).join("")}` +
    `author ${who}\ncommitter ${who}\nagstate-nonce ${randomHex(16)}\n\n${message}`;
  const body = Buffer.from(text);
  return {
    id: gitId("commit", body),
    body,
    parents: parents.map(({ id }) => id),
    generation: 1 + Math.max(0, ...parents.map(({ generation }) => generation)),
    time,
    externalId,
    inline,
  };
}

/** A line of commits, oldest first, on top of a commit or of nothing. */
export function chain(length: number, base?: CommitRecord): CommitRecord[] {
  const commits: CommitRecord[] = [];
  let parent = base;
  for (let i = 0; i < length; i++) {
    parent = commit({ parents: parent === undefined ? [] : [parent] });
    commits.push(parent);
  }
  return commits;
}

export const ANY: Expectation = { kind: "any" };
export const ABSENT: Expectation = { kind: "absent" };

export function at(holder: { readonly id: ObjectId }): Expectation {
  return { kind: "id", id: holder.id };
}

/** A move with defaults for what a case does not care about; the target is the last commit. */
export function move(
  ref: string,
  expect: Expectation,
  commits: readonly CommitRecord[],
  rest: Partial<RefMove> = {},
): RefMove {
  return {
    ref,
    expect,
    target: commits.at(-1)?.id ?? null,
    incarnation: randomHex(16),
    maxStep: 0,
    commits,
    log: { actor: "ada", reason: "because", time: 1_700_000_000_123, trace: "" },
    ...rest,
  };
}

export function workflow(id: string, rest: Partial<WorkflowRecord> = {}): WorkflowRecord {
  return {
    id,
    classification: "internal",
    storageRegion: null,
    retentionPolicy: null,
    isolation: "{}",
    createdAt: 1_700_000_000_000,
    completedAt: null,
    ...rest,
  };
}

/** Creates workflows, with nothing in them. */
export async function begin(storage: Storage, ...ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    const create = workflow(id);
    const answer = await storage.write({
      workflow: id,
      create,
      objects: [],
      moves: [],
      atomic: true,
    });
    assert.equal(answer.workflow, "created");
  }
}

/** Writes to workflow `w`, each move judged alone. */
export function send(
  storage: Storage,
  moves: readonly RefMove[],
  rest: Partial<Omit<WriteBatch, "moves">> = {},
): Promise<WriteAnswer> {
  return storage.write({ workflow: "w", objects: [], moves, atomic: false, ...rest });
}

/** The answer to a batch of one move. */
export async function sendOne(
  storage: Storage,
  one: RefMove,
  rest: { objects?: readonly ObjectRecord[]; workflow?: string } = {},
): Promise<MoveAnswer> {
  const answer = await send(storage, [one], rest);
  assert.equal(answer.moves.length, 1);
  return answer.moves[0]!;
}

/** Makes a move that must succeed, and gives the ref's row after it. */
export async function mustMove(
  storage: Storage,
  one: RefMove,
  rest: { objects?: readonly ObjectRecord[]; workflow?: string } = {},
): Promise<RefRow> {
  const answer = await sendOne(storage, one, rest);
  assert.equal(answer.outcome, "moved", `${one.ref}: ${JSON.stringify(answer)}`);
  return (answer as { row: RefRow }).row;
}

/** The ref's row, or null when the store never saw the name. */
export async function refRow(storage: Storage, name: string, w = "w"): Promise<RefRow | null> {
  const rows = await storage.readRefs(w, { names: [name] });
  assert.ok(rows.length <= 1);
  return rows[0] ?? null;
}

/** Asserts that a body came back byte for byte. */
export function sameBytes(actual: Uint8Array | undefined, expected: Uint8Array): void {
  assert.ok(actual !== undefined, "nothing was stored");
  assert.equal(Buffer.compare(actual, expected), 0, "the bytes differ");
}

/** Asserts that an object came back as it was written. */
export async function mustHold(
  storage: Storage,
  objects: readonly ObjectRecord[],
  w = "w",
): Promise<void> {
  const found = await storage.readObjects(
    w,
    objects.map(({ id }) => id),
  );
  assert.equal(found.length, objects.length);
  for (const [i, object] of objects.entries()) sameObject(found[i], object);
}

export function sameObject(found: unknown, expected: ObjectRecord): void {
  const actual = found as ObjectRecord | undefined;
  assert.ok(actual !== undefined, `object ${expected.id} is not stored`);
  assert.equal(actual.id, expected.id);
  assert.equal(actual.type, expected.type);
  assert.equal(actual.encoding ?? 0, expected.encoding ?? 0);
  sameBytes(actual.body, expected.body);
}

/** Asserts that a tombstone stands there, and nothing else of the object. */
export function sameTombstone(found: StoredObject | undefined, expected: TombstoneRecord): void {
  assert.ok(found !== undefined, `nothing stands in the place of ${expected.id}`);
  assert.ok("tombstone" in found, `${expected.id} is an object still`);
  const { id, type, tombstone } = found;
  assert.deepEqual({ id, type }, { id: expected.id, type: expected.type });
  sameBytes(tombstone, expected.tombstone);
  assert.ok(!("body" in found));
}

/** Asserts that a commit came back as it was written, its graph columns and inlined objects too. */
export function sameCommit(actual: CommitRecord | undefined, expected: CommitRecord): void {
  assert.ok(actual !== undefined, `commit ${expected.id} is not stored`);
  const plain = ({ id, parents, generation, time, externalId }: CommitRecord) => ({
    id,
    parents: [...parents],
    generation,
    time,
    externalId,
  });
  assert.deepEqual(plain(actual), plain(expected));
  sameBytes(actual.body, expected.body);
  assert.equal(actual.inline.length, expected.inline.length);
  for (const [i, object] of expected.inline.entries()) {
    if ("tombstone" in object) sameTombstone(actual.inline[i], object);
    else sameObject(actual.inline[i], object);
  }
}

/** Asserts that the store holds none of these ids, neither as object nor as commit. */
export async function mustNotHold(
  storage: Storage,
  ids: readonly ObjectId[],
  w = "w",
): Promise<void> {
  const objects = await storage.readObjects(w, ids);
  const commits = await storage.readCommits(w, ids);
  for (const [i, id] of ids.entries()) {
    assert.equal(objects[i], undefined, `object ${id} is stored`);
    assert.equal(commits[i], undefined, `commit ${id} is stored`);
  }
}
