import type { ObjectId } from "../core/ids.js";
import { isJsonObject } from "../core/json.js";
import type { LoadedCommit } from "../objects/commit-reader.js";
import { type Place, placeAt } from "../objects/decode.js";
import { KeyTable } from "../objects/draft/key-table.js";
import type { ObjectReader } from "../objects/reader.js";
import { treeKind } from "../objects/tree-kind.js";
import { Asked, type AskedAt } from "./blame-asked.js";
import { listLength } from "./blame-lists.js";
import { type BlameSource, CommitPages } from "./blame-pages.js";
import { Passing } from "./blame-pass.js";
import { warm } from "./blame-warm.js";
import { PriorityQueue } from "./priority-queue.js";

export type { BlameSource } from "./blame-pages.js";

type Path = readonly string[];

export interface BlameOptions {
  /** Ends the walk early, by throwing its reason. */
  readonly signal?: AbortSignal | undefined;
}

/** The commit that last wrote a value, or took it away. */
export interface LastWriter {
  readonly commit: LoadedCommit;
  readonly kind: "wrote" | "removed";
  /**
   * Whether the value may be older than the commit: the history goes on before
   * it, but is not stored or was erased.
   */
  readonly boundary: boolean;
}

/** A value, or a stretch of elements of a list, with the commit that last wrote it. */
export interface BlamedPart {
  /** Of the value; of the list, when it is a stretch of elements. */
  readonly path: Path;
  /** The elements from `from` to `to` (exclusive); null when it is no stretch of elements. */
  readonly elements: { readonly from: number; readonly to: number } | null;
  readonly commit: LoadedCommit;
  /** As in {@link LastWriter}. */
  readonly boundary: boolean;
}

/**
 * Finds who last wrote the values at some paths, for each of some tips, in one
 * walk.
 *
 * As `git log` and `git blame` simplify a history: a commit whose value at the
 * path is the same as one of its parents' hands the question on to the first
 * such parent; a commit that differs from all its parents, or a root that has
 * the value, wrote it. So a value that was written twice alike in a row counts
 * from the first time, one that was deleted and written again from the second,
 * and a merge only for what it made itself. A token that is a list's index is
 * that of the tip: the element is followed to where it stood before.
 *
 * @returns a row a tip, in it an answer a path: null where there is no value and
 *   never was one on the way down
 * @throws AgstateError `MISSING_OBJECT` when a tip is not stored
 */
export async function lastWriters(
  source: BlameSource,
  tips: readonly ObjectId[],
  paths: readonly Path[],
  options: BlameOptions = {},
): Promise<(LastWriter | null)[][]> {
  const starts = new Map<ObjectId, Asked>();
  tips.forEach((tip, row) => {
    const asked = starts.get(tip) ?? new Asked();
    starts.set(tip, asked);
    paths.forEach((path, i) => {
      asked.at(path).questions.push(row * paths.length + i);
    });
  });
  const answers = new Array<LastWriter | null>(tips.length * paths.length).fill(null);
  await walk(source, starts, options, async (commit, { tokens, questions }, isLost) => {
    const kind = (await isThere(source.objects, commit, tokens)) ? "wrote" : "removed";
    for (const question of questions) {
      answers[question] = { commit, kind, boundary: isLost(question) };
    }
  });
  return tips.map((_, row) => answers.slice(row * paths.length, (row + 1) * paths.length));
}

/**
 * Blames the parts of a value: one part for a scalar, a text or what is empty;
 * a part a member for an object, sorted by key; a part for each stretch of
 * elements with one writer for a list. Members and elements are taken as wholes,
 * so that one with a changed member of its own counts as written then.
 *
 * @returns null when there is no value at the path
 * @throws AgstateError `MISSING_OBJECT` when the tip is not stored
 */
export async function blameValue(
  source: BlameSource,
  tip: ObjectId,
  path: Path,
  options: BlameOptions = {},
): Promise<BlamedPart[] | null> {
  const [commit] = await source.commits.readAll([tip]);
  const state = (commit as LoadedCommit).root.state;
  const place = state && (await placeAt(source.objects, state, path));
  if (place === undefined) return null;
  const asked = new Asked();
  const { keys, length } = await partsOf(source.objects, place);
  const paths = keys?.map((key) => [...path, key]) ?? [path];
  if (length > 0) {
    asked.at(path).spans.push({ question: 0, at: 0, count: length, first: 0 });
  } else {
    paths.forEach((each, i) => {
      asked.at(each).questions.push(i);
    });
  }

  const parts: BlamedPart[] = [];
  await walk(source, new Map([[tip, asked]]), options, async (commit, at, isLost) => {
    for (const question of at.questions) {
      const boundary = isLost(question);
      parts[question] = { path: paths[question] as Path, elements: null, commit, boundary };
    }
    for (const { question, first, count } of at.spans) {
      const elements = { from: first, to: first + count };
      parts.push({ path, elements, commit, boundary: isLost(question) });
    }
  });
  return length > 0 ? joined(parts) : parts;
}

/** Puts stretches in order, and those together that meet and have one writer. */
function joined(parts: readonly BlamedPart[]): BlamedPart[] {
  const from = (part: BlamedPart) => (part.elements as { from: number }).from;
  const lines: BlamedPart[] = [];
  for (const part of [...parts].sort((a, b) => from(a) - from(b))) {
    const last = lines.at(-1);
    if (last?.commit.id === part.commit.id && last.boundary === part.boundary) {
      const to = (part.elements as { to: number }).to;
      lines[lines.length - 1] = { ...last, elements: { from: from(last), to } };
    } else {
      lines.push(part);
    }
  }
  return lines;
}

/** The keys of an object with members, the length of a list with elements. */
async function partsOf(
  reader: ObjectReader,
  place: Place,
): Promise<{ keys?: readonly string[]; length: number }> {
  if ("link" in place && place.link.type === "blob") {
    const value = JSON.parse(await reader.text(place.link.id));
    return partsOf(reader, { value });
  }
  if ("value" in place) {
    if (Array.isArray(place.value)) return { length: place.value.length };
    if (!isJsonObject(place.value)) return { length: 0 };
    const keys = Object.keys(place.value).sort();
    return keys.length > 0 ? { keys, length: 0 } : { length: 0 };
  }
  const { id } = place.link;
  const kind = treeKind(await reader.tree(id));
  if (kind === "text") return { length: 0 };
  if (kind === "list") return { length: await listLength(reader, place) };
  const table = await KeyTable.stored(reader, id);
  return { keys: [...(await table.all()).keys()].sort(), length: 0 };
}

async function isThere(reader: ObjectReader, commit: LoadedCommit, path: Path): Promise<boolean> {
  const { state } = commit.root;
  return state !== undefined && (await placeAt(reader, state, path)) !== undefined;
}

/** Told of each path whose questions end at a commit; `isLost` tells whether the walk could not go on. */
type Answer = (
  commit: LoadedCommit,
  at: AskedAt,
  isLost: (question: number) => boolean,
) => Promise<void>;

interface Waiting {
  readonly commit: LoadedCommit;
  readonly asked: Asked;
}

/**
 * Takes questions from their tips down to the commits that answer them.
 *
 * Commits come by falling generation, so that each comes once, with all that
 * its descendants handed on to it.
 */
async function walk(
  source: BlameSource,
  starts: ReadonlyMap<ObjectId, Asked>,
  { signal }: BlameOptions,
  answer: Answer,
): Promise<void> {
  const queue = new PriorityQueue<Waiting>((a, b) => b.commit.generation - a.commit.generation);
  const waiting = new Map<ObjectId, Waiting>();
  const ask = (commit: LoadedCommit, asked: Asked): void => {
    if (asked.empty) return;
    const known = waiting.get(commit.id);
    if (known !== undefined) {
      known.asked.absorb(asked);
    } else {
      const fresh = { commit, asked };
      waiting.set(commit.id, fresh);
      queue.push(fresh);
    }
  };
  let current = new Asked();
  const pages = new CommitPages(source, async (commits) => {
    const states = new Set<ObjectId>();
    for (const { root } of commits) if (root.state !== undefined) states.add(root.state.id);
    await warm(source.objects, [...states], current);
  });

  const tips = [...starts.keys()];
  const commits = await source.commits.readAll(tips);
  tips.forEach((tip, i) => {
    ask(commits[i] as LoadedCommit, starts.get(tip) as Asked);
  });

  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    signal?.throwIfAborted();
    const { commit, asked } = next;
    waiting.delete(commit.id);
    current = asked;
    const passing = new Passing(source.objects);
    const place = placeOf(commit);
    let left: Asked | null = asked;
    let known = 0;
    for (const id of commit.parents) {
      if (left === null) break;
      const parent = await pages.get(id, commit.generation, () => parentsOf(commit, queue));
      if (parent === undefined) continue;
      known++;
      const passed: Asked = left;
      left = await passing.pass(place, placeOf(parent), passed);
      ask(parent, passed);
    }
    // What a root has not, nobody wrote.
    if (known === 0 && left !== null) left = await passing.pass(place, undefined, left);
    if (left === null) continue;
    const cutOff = known < commit.parents.length || commit.cut !== undefined;
    for (const at of left.all()) {
      await answer(commit, at, (question) => cutOff || passing.lost.has(question));
    }
  }
}

/** The parents of a commit and of those that come after it, near ones first. */
function* parentsOf(commit: LoadedCommit, queue: PriorityQueue<Waiting>): Generator<ObjectId> {
  yield* commit.parents;
  for (const { commit: other } of queue.front(queue.size)) yield* other.parents;
}

function placeOf(commit: LoadedCommit): Place | undefined {
  const { state } = commit.root;
  return state && { link: state };
}
