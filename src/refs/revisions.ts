import { AgstateError } from "../core/errors.js";
import { isObjectId, type ObjectId, ZERO_ID } from "../core/ids.js";
import { quoteForMessage } from "../core/names.js";
import type { GraphNode, RefRow, Storage } from "../storage/port.js";
import { refCandidates } from "./names.js";
import { parseRevision, type Revision, type RevisionStep } from "./revision-syntax.js";

/** How many candidates an ambiguous id lists. */
const CANDIDATES_SHOWN = 20;

/** How many nodes of the graph one call reads while walking back. */
const WALK_BATCH = 512;

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
  ) {}

  /**
   * Resolves a revision.
   *
   * @throws AgstateError `INVALID_REVISION`, `REVISION_NOT_FOUND`, `AMBIGUOUS_REVISION`
   */
  async resolve(text: string): Promise<ResolvedRevision> {
    const revision = parseRevision(text);
    // A deleted ref has no commit, but its log is still there.
    const ref = await this.findRef(revision.base, revision.reflog !== null);
    let id: ObjectId;
    if (ref !== undefined) {
      id = revision.reflog === null ? (ref.id as ObjectId) : await this.fromLog(revision, ref);
    } else {
      if (revision.reflog !== null) throw notFound(revision, "names no ref, so it has no reflog");
      id = await this.findId(revision);
    }
    for (const step of revision.steps) id = await this.follow(revision, id, step);
    return { id, ref: ref ?? null, pointer: revision.pointer };
  }

  /** The ref that a name means, a live one before one that is deleted; undefined when there is none. */
  async findRef(name: string, alsoDeleted = false): Promise<RefRow | undefined> {
    const candidates = refCandidates(name);
    const rows = await this.storage.readRefs(this.workflow, { names: candidates });
    for (const live of alsoDeleted ? [true, false] : [true]) {
      for (const candidate of candidates) {
        const row = rows.find((r) => r.name === candidate && (r.id !== null) === live);
        if (row !== undefined) return row;
      }
    }
    return undefined;
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
    if (!/^[0-9a-f]{4,64}$/.test(text)) {
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
        throw notFound(revision, `commit ${from} has ${node?.parents.length ?? 0} parents`);
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
          Math.min(left + 1, WALK_BATCH),
        );
        nodes = new Map(read.map((node) => [node.id, node]));
      }
      const parent = nodes.get(id)?.parents[0];
      if (parent === undefined) {
        throw notFound(revision, `the history ends ${step.count - left} commits back, at ${id}`);
      }
      id = parent;
    }
    return id;
  }
}

function notFound(revision: Revision, why: string): AgstateError {
  return new AgstateError(
    "REVISION_NOT_FOUND",
    `revision ${quoteForMessage(revision.text)} was not found: ${why}`,
    { revision: revision.text },
  );
}
