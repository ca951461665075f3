import { isAgstateError } from "../core/errors.js";
import type { ObjectId } from "../core/ids.js";
import type { HistoryReader } from "../merge/history.js";
import type { LoadedCommit } from "../objects/commit-reader.js";
import {
  BELOW_MAX_BYTES,
  BELOW_MAX_OBJECTS,
  type DecodedObject,
  type ObjectReader,
} from "../objects/reader.js";
import type { Repository } from "../store/repository.js";

/** How many commits the first page has; each further one has twice as many, up to the most. */
const FIRST_PAGE = 20;
const PAGE_MAX = 100;

/** What a page may bring along of states beside where they begin: that much may be of no use. */
const ALONG_MAX_BYTES = 256 * 1024;

/** A stretch of a line of commits. */
interface Page {
  readonly commits: ReadonlyMap<ObjectId, LoadedCommit>;
  readonly objects: ReadonlyMap<ObjectId, DecodedObject>;
  /** Those whose checkpoint was put once more, off the line. */
  readonly replaced: ReadonlySet<ObjectId>;
}

/** Reads the commits of checkpoints along first parents a page at a time, with their frames and where their states begin. */
export class LinePages {
  /** Where the branches of the namespace are: there a checkpoint of the line may have been put again. */
  tips: readonly ObjectId[] = [];

  private size = FIRST_PAGE;
  private page: Page = { commits: new Map(), objects: new Map(), replaced: new Set() };
  private forks: ReadonlyMap<ObjectId, readonly ObjectId[]> | undefined;

  constructor(private readonly repository: Repository) {}

  /** A commit of the page that was read last. */
  peek(id: ObjectId): LoadedCommit | undefined {
    return this.page.commits.get(id);
  }

  /** A reader of what a commit of that page is made of. */
  objectsOf({ inline }: LoadedCommit): ObjectReader {
    const { objects } = this.page;
    return this.repository.objects.with({ get: (id) => inline.get(id) ?? objects.get(id) });
  }

  /** Whether the checkpoint of a commit of that page was put once more, on a branch that leaves the line there. */
  isReplaced({ id }: LoadedCommit): boolean {
    return this.page.replaced.has(id);
  }

  /** Reads a commit: where it is not on the page, with a page of those below, which takes the place of the last. */
  async read(id: ObjectId): Promise<LoadedCommit> {
    const known = this.page.commits.get(id);
    if (known !== undefined) return known;
    const objects = new Map<ObjectId, DecodedObject>();
    const line: LoadedCommit[] = [];
    // What is damaged further down is an error only for whoever comes there.
    await unlessDamaged(() => this.readLine(id, line, objects));
    if (line.length === 0) line.push(await this.repository.commits.read(id));
    await unlessDamaged(() => this.readRoots(line, objects));
    const replaced = new Set<ObjectId>();
    await unlessDamaged(() => this.findReplaced(line, replaced));
    this.page = { commits: new Map(line.map((each) => [each.id, each])), objects, replaced };
    this.size = Math.min(2 * this.size, PAGE_MAX);
    return line[0] as LoadedCommit;
  }

  private async readLine(
    from: ObjectId,
    line: LoadedCommit[],
    objects: Map<ObjectId, DecodedObject>,
  ): Promise<void> {
    const { commits, objects: reader, history } = this.repository;
    let next: ObjectId | undefined = from;
    while (next !== undefined && line.length < this.size && commits.has(next)) {
      const commit: LoadedCommit = await commits.read(next);
      line.push(commit);
      next = commit.parents[0];
    }
    const left = this.size - line.length;
    if (next === undefined || left === 0) return;
    if (reader.readsAhead) {
      const read = await reader.readAhead({
        line: { from: next, commits: left },
        entries: ["state", "checkpoint"],
        maxObjects: 2 * left,
        maxBytes: ALONG_MAX_BYTES,
      });
      line.push(...read.commits.map((record) => commits.prime(record)));
      for (const [id, object] of read.objects) objects.set(id, object);
      return;
    }
    const ids: ObjectId[] = [];
    await unlessDamaged(async () => {
      for await (const { id } of history.firstParentWalk(next)) {
        ids.push(id);
        if (ids.length === left) break;
      }
    });
    if (ids.length > 0) line.push(...(await commits.readAll(ids)));
  }

  /** Reads the frames that are not in their commits' rows, and where the states begin. */
  private async readRoots(
    line: readonly LoadedCommit[],
    objects: Map<ObjectId, DecodedObject>,
  ): Promise<void> {
    const { objects: reader } = this.repository;
    const at = (id: ObjectId) => objects.get(id) ?? reader.peek(id);
    const lacks = (id: ObjectId): boolean => {
      const object = at(id);
      if (object === undefined) return true;
      return object.type === "tree" && object.entries.some((entry) => lacks(entry.id));
    };
    const apart = (part: "state" | "checkpoint") =>
      line.flatMap(({ root, inline }) => {
        const id = root[part]?.id;
        return id === undefined || inline.has(id) ? [] : id;
      });
    const frames = apart("checkpoint");
    const ids = [...new Set(frames)].filter(lacks);
    if (reader.readsAhead && ids.length > 0) {
      const limits = { maxObjects: BELOW_MAX_OBJECTS, maxBytes: BELOW_MAX_BYTES };
      const read = await reader.readAhead({ ids, ...limits });
      for (const [id, object] of read.objects) objects.set(id, object);
    }
    // Level by level, a call each: of the states the first, of the frames all.
    const whole = new Set(frames);
    for (let level = new Set([...frames, ...apart("state")]); level.size > 0; ) {
      const absent = [...level].filter((id) => !objects.has(id));
      const read = await reader.readAll(absent);
      for (const [i, id] of absent.entries()) objects.set(id, read[i] as DecodedObject);
      const next = [...level].flatMap((id) => {
        const object = objects.get(id);
        return whole.has(id) && object?.type === "tree"
          ? object.entries.map((each) => each.id)
          : [];
      });
      level = new Set(next);
      for (const id of level) whole.add(id);
    }
  }

  /** Finds those whose checkpoint stands once more on top of them, where the history forks. */
  private async findReplaced(
    line: readonly LoadedCommit[],
    replaced: Set<ObjectId>,
  ): Promise<void> {
    if (this.tips.length < 2) return;
    const { commits, history } = this.repository;
    this.forks ??= await forksBelow(history, this.tips);
    const { forks } = this;
    const children = await commits.readAll(line.flatMap(({ id }) => forks.get(id) ?? []));
    const byParent = new Map(line.map((each) => [each.id, each]));
    for (const child of children) {
      const parent = byParent.get(child.parents[0] as ObjectId);
      if (parent !== undefined && child.externalId === parent.externalId) replaced.add(parent.id);
    }
  }
}

/** The commits below the tips that are the first parent of more than one, each with these. */
async function forksBelow(
  history: HistoryReader,
  tips: readonly ObjectId[],
): Promise<Map<ObjectId, ObjectId[]>> {
  const forks = new Map<ObjectId, ObjectId[]>();
  /** Of commits that have not come yet; children come before their parents. */
  const children = new Map<ObjectId, ObjectId[]>();
  await unlessDamaged(async () => {
    for await (const { id, parents } of history.topoWalk(tips)) {
      const own = children.get(id) ?? [];
      children.delete(id);
      if (own.length > 1) forks.set(id, own);
      const [first] = parents;
      if (first !== undefined) children.set(first, [...(children.get(first) ?? []), id]);
    }
  });
  return forks;
}

/** Does what is no more than reading ahead, as far as nothing is missing or damaged. */
async function unlessDamaged(act: () => Promise<void>): Promise<void> {
  try {
    await act();
  } catch (error) {
    if (!isAgstateError(error, "MISSING_OBJECT", "CORRUPT_OBJECT", "ERASED", "WITHHELD"))
      throw error;
  }
}
