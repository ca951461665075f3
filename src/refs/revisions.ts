import { AgstateError, isAgstateError } from "../core/errors.js";
import { isObjectId, type ObjectId, ZERO_ID } from "../core/ids.js";
import { quoteForMessage } from "../core/names.js";
import type { GraphNode, RefRow, Storage } from "../storage/port.js";
import { refCandidates } from "./names.js";
import { parseRevision, type Revision, type RevisionStep } from "./revision-syntax.js";

/** How many candidates an ambiguous id lists. */
const CANDIDATES_SHOWN = 20;

/** How many nodes of the graph one call reads at most while walking back. */
const WALK_MAX_NODES = 4096;
/** How many it reads at most beside those of the line that is followed: two for each step back. */
const BESIDE_MAX_NODES = 512;

export interface ResolvedRevision {
  readonly id: ObjectId;
  /** The ref that the revision began with, null when it began with an id. */
  readonly ref: RefRow | null;
  readonly pointer: string | null;
}

/** Finds the commits that revisions mean, in one workflow. */
export class RevisionResolver {
  constructor(
    private readonly storage: Storage,
    private readonly workflow: string,
    /** Says why the history ends at a commit that had parents; undefined where it had none. */
    private readonly explainEnd: (id: ObjectId) => Promise<string | undefined> = async () =>
      undefined,
  ) {}

  /**
   * Resolves a revision.
   *
   * @throws AgstateError `INVALID_REVISION`, `REVISION_NOT_FOUND`, `AMBIGUOUS_REVISION`
   */
  async resolve(text: string): Promise<ResolvedRevision> {
    return (await this.resolveAll([text]))[0] as ResolvedRevision;
  }

  /** Resolves revisions, their refs in one call to the storage; fails for the first that means nothing. */
  async resolveAll(texts: readonly string[]): Promise<ResolvedRevision[]> {
    return (await this.resolveBeside(texts, [])).resolved;
  }

  /** Resolves revisions, and in the same call reads refs by their full names, those that there are. */
  resolveBeside(
    texts: readonly string[],
    refs: readonly string[],
  ): Promise<{ resolved: ResolvedRevision[]; rows: readonly RefRow[] }> {
    return this.all(texts, refs, false);
  }

  /**
   * Resolves revisions for work that reads the commits that they mean: full ids are not looked up
   * before. When the work finds no such commit, it fails as `resolve` does.
   *
   * @throws AgstateError as `resolve`, and what the work throws
   */
  async using<T>(
    texts: readonly string[],
    work: (resolved: readonly ResolvedRevision[]) => Promise<T>,
  ): Promise<T> {
    const { resolved } = await this.all(texts, [], true);
    try {
      return await work(resolved);
    } catch (error) {
      if (isAgstateError(error, "MISSING_OBJECT")) await this.resolveAll(texts);
      throw error;
    }
  }

  /** @param trusting whether a full id is taken for that of a commit */
  private async all(
    texts: readonly string[],
    refs: readonly string[],
    trusting: boolean,
  ): Promise<{ resolved: ResolvedRevision[]; rows: readonly RefRow[] }> {
    const revisions = texts.map(parseRevision);
    const bases = revisions.map(({ base }) => base).filter((base) => !isId(base));
    const names = [...new Set([...refs, ...bases.flatMap(refCandidates)])];
    const rows = names.length === 0 ? [] : await this.storage.readRefs(this.workflow, { names });
    const resolved: ResolvedRevision[] = [];
    for (const revision of revisions) {
      // A deleted ref has no commit, but its log is still there.
      const ref = refAmong(rows, revision.base, revision.reflog !== null);
      resolved.push(await this.from(revision, ref, trusting));
    }
    return { resolved, rows };
  }

  private async from(
    revision: Revision,
    ref: RefRow | undefined,
    trusting: boolean,
  ): Promise<ResolvedRevision> {
    let id: ObjectId;
    if (ref !== undefined) {
      id = revision.reflog === null ? (ref.id as ObjectId) : await this.fromLog(revision, ref);
    } else {
      if (revision.reflog !== null) throw notFound(revision, "names no ref, so it has no reflog");
      const text = revision.base.toLowerCase();
      const trusted = trusting && revision.steps.length === 0 && isObjectId(text);
      id = trusted ? text : await this.findId(revision);
    }
    for (const step of revision.steps) id = await this.follow(revision, id, step);
    return { id, ref: ref ?? null, pointer: revision.pointer };
  }

  /** The ref that a name means, a live one before one that is deleted; undefined when there is none. */
  async findRef(name: string, alsoDeleted = false): Promise<RefRow | undefined> {
    const names = refCandidates(name);
    return refAmong(await this.storage.readRefs(this.workflow, { names }), name, alsoDeleted);
  }

  private async fromLog(revision: Revision, ref: RefRow): Promise<ObjectId> {
    const back = revision.reflog as number;
    const [entry] = await this.storage.readReflog(this.workflow, ref.name, {
      limit: 1,
      fromSeq: ref.seq - back,
    });
    if (back >= ref.seq || entry === undefined) {
      throw notFound(revision, `the log of ${ref.name} has ${ref.seq} entries`);
    }
    if (entry.new === ZERO_ID) throw notFound(revision, "the ref did not exist then");
    return entry.new;
  }

  private async findId(revision: Revision): Promise<ObjectId> {
    const text = revision.base.toLowerCase();
    if (!isId(text)) {
      throw notFound(
        revision,
        "there is no such branch or tag; see agstate branch and agstate tag",
      );
    }
    const found = await this.storage.findIds(this.workflow, text, CANDIDATES_SHOWN + 1);
    const commits = found.filter((f) => f.type === "commit");
    if (commits.length === 1) return (commits[0] as { id: ObjectId }).id;
    if (commits.length === 0) {
      throw notFound(
        revision,
        found.length > 0
          ? `${found[0]?.id} is a ${found[0]?.type}, not a commit`
          : isObjectId(text)
            ? "there is no commit with this id"
            : "there is no ref of this name and no commit id that begins so",
      );
    }
    const ids = commits.slice(0, CANDIDATES_SHOWN).map((c) => c.id);
    throw new AgstateError(
      "AMBIGUOUS_REVISION",
      `revision ${quoteForMessage(revision.text)} is ambiguous; candidates:\n${ids
        .map((id) => `  ${id}`)
        .join("\n")}${commits.length > CANDIDATES_SHOWN ? "\n  ..." : ""}`,
      { revision: revision.text, candidates: ids },
    );
  }

  private async follow(revision: Revision, from: ObjectId, step: RevisionStep): Promise<ObjectId> {
    if (step.kind === "^") {
      if (step.count === 0) return from;
      const [node] = await this.storage.readGraph(this.workflow, [from], 1);
      const parent = node?.parents[step.count - 1];
      if (parent === undefined) {
        const count = node?.parents.length ?? 0;
        const why = count === 0 ? await this.explainEnd(from) : undefined;
        throw notFound(revision, why ?? `commit ${from} has ${count} parents`);
      }
      return parent;
    }
    let id = from;
    let nodes = new Map<ObjectId, GraphNode>();
    for (let left = step.count; left > 0; left--) {
      if (!nodes.has(id)) {
        const read = await this.storage.readGraph(
          this.workflow,
          [id],
          Math.min(1 + left + Math.min(2 * left, BESIDE_MAX_NODES), WALK_MAX_NODES),
        );
        nodes = new Map(read.map((node) => [node.id, node]));
      }
      const parent = nodes.get(id)?.parents[0];
      if (parent === undefined) {
        const why = (await this.explainEnd(id)) ?? `at ${id}`;
        throw notFound(revision, `the history ends ${step.count - left} commits back, ${why}`);
      }
      id = parent;
    }
    return id;
  }
}

/** Whether a name is an id or the beginning of one; no ref is called so. */
function isId(name: string): boolean {
  return /^[0-9a-f]{4,64}$/i.test(name);
}

/** The ref that a name means, among those that its candidates name. */
function refAmong(rows: readonly RefRow[], name: string, alsoDeleted: boolean): RefRow | undefined {
  const candidates = refCandidates(name);
  for (const live of alsoDeleted ? [true, false] : [true]) {
    for (const candidate of candidates) {
      const row = rows.find((r) => r.name === candidate && (r.id !== null) === live);
      if (row !== undefined) return row;
    }
  }
  return undefined;
}

function notFound(revision: Revision, why: string): AgstateError {
  return new AgstateError(
    "REVISION_NOT_FOUND",
    `revision ${quoteForMessage(revision.text)} was not found: ${why}`,
    { revision: revision.text },
  );
}
