import type { ObjectId } from "../../src/core/ids.js";
import { forward } from "../../src/storage/decorators/forward.js";
import type {
  Below,
  BelowRequest,
  CommitRecord,
  Storage,
  StoredObject,
} from "../../src/storage/port.js";

/** What a model of `readBelow` leaves out beyond what it must. */
export interface Reticence {
  /** Whether an object is kept back though it could be answered. */
  readonly keepsBack?: (id: ObjectId) => boolean;
}

/** Gives a storage that reads nothing below objects the hint, the slow and plain way. */
export function withReadBelow(storage: Storage, { keepsBack }: Reticence = {}): Storage {
  return {
    ...forward(storage),
    async readBelow(workflow, request): Promise<Below> {
      const { ids = [], commits: wanted = [], line, entries = [] } = request;
      const found = await storage.readCommits(workflow, [...new Set(wanted)]);
      const commits =
        line === undefined
          ? found.filter((commit) => commit !== undefined)
          : await lineOf(storage, workflow, line);
      const start = [...ids, ...commits.flatMap((commit) => rootIds(commit, entries))];
      const objects = await below(storage, workflow, start, request);
      return { commits, objects: objects.filter(({ id }) => keepsBack?.(id) !== true) };
    },
  };
}

async function lineOf(
  storage: Storage,
  workflow: string,
  { from, commits: most }: NonNullable<BelowRequest["line"]>,
): Promise<CommitRecord[]> {
  const line: CommitRecord[] = [];
  for (let id: ObjectId | undefined = from; id !== undefined && line.length < most; ) {
    const [commit] = await storage.readCommits(workflow, [id]);
    if (commit === undefined) break;
    line.push(commit);
    id = commit.parents[0];
  }
  return line;
}

async function below(
  storage: Storage,
  workflow: string,
  start: readonly ObjectId[],
  { known = [], maxObjects, maxBytes }: BelowRequest,
): Promise<StoredObject[]> {
  const seen = new Set(known);
  const objects: StoredObject[] = [];
  let bytes = 0;
  for (let level = start; level.length > 0; ) {
    const next: ObjectId[] = [];
    for (const id of level) {
      if (seen.has(id)) continue;
      seen.add(id);
      const [object] = await storage.readObjects(workflow, [id]);
      if (object === undefined) continue;
      bytes += ("tombstone" in object ? object.tombstone : object.body).length;
      if (objects.length === maxObjects || bytes > maxBytes) return objects;
      objects.push(object);
      const isPlain = !("tombstone" in object) && (object.encoding ?? 0) === 0;
      if (isPlain && object.type === "tree") {
        next.push(...(entriesOf(object.body) ?? []).map((entry) => entry.id));
      }
    }
    level = next;
  }
  return objects;
}

function rootIds(commit: CommitRecord, entries: readonly string[]): ObjectId[] {
  const [, tree] = /^tree ([0-9a-f]{64})\n/.exec(Buffer.from(commit.body).toString("latin1")) ?? [];
  const root = commit.inline.find(({ id }) => id === tree);
  const named = root === undefined || "tombstone" in root ? [] : (entriesOf(root.body) ?? []);
  return named.filter(({ name }) => entries.includes(name)).map(({ id }) => id);
}

/** The entries of a Git tree; null when it is no well-formed one. */
function entriesOf(bytes: Uint8Array): { name: string; id: ObjectId }[] | null {
  const body = Buffer.from(bytes);
  const entries: { name: string; id: ObjectId }[] = [];
  for (let at = 0; at < body.length; ) {
    const zero = body.indexOf(0, at);
    if (zero < 0 || zero + 33 > body.length) return null;
    const name = body.toString("utf8", body.indexOf(0x20, at) + 1, zero);
    entries.push({ name, id: body.toString("hex", zero + 1, zero + 33) as ObjectId });
    at = zero + 33;
  }
  return entries;
}
