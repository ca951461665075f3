import type { ObjectId } from "../../src/core/ids.js";
import { forward } from "../../src/storage/decorators/forward.js";
import type {
  Below,
  BelowRequest,
  CommitRecord,
  MoveAnswer,
  ObjectRecord,
  PendingRow,
  Redacted,
  RefRow,
  Storage,
  StoredReflogEntry,
  TombstoneRecord,
  WriteAnswer,
} from "../../src/storage/port.js";
import { unknownId } from "../../src/testing/fixtures.js";
import { withReadBelow } from "../support/read-below.js";

/** A backend that does one thing wrong, made out of one that does everything right. */
export type Canary = (good: Storage) => Storage;

function answering(good: Storage, change: (answer: MoveAnswer) => MoveAnswer): Storage {
  return {
    ...forward(good),
    async write(batch) {
      const answer = await good.write(batch);
      return { ...answer, moves: answer.moves.map(change) };
    },
  };
}

function nameOf(workflow: string, { key, index }: PendingRow): string {
  return JSON.stringify([workflow, key, index]);
}

function readingRefs(good: Storage, change: (rows: RefRow[]) => RefRow[]): Storage {
  return {
    ...forward(good),
    readRefs: async (w, pattern) => change(await good.readRefs(w, pattern)),
  };
}

function readingLog(
  good: Storage,
  change: (log: StoredReflogEntry[]) => StoredReflogEntry[],
): Storage {
  return {
    ...forward(good),
    readReflog: async (w, ref, options) => change(await good.readReflog(w, ref, options)),
  };
}

function readingCommits(good: Storage, change: (commit: CommitRecord) => CommitRecord): Storage {
  return {
    ...forward(good),
    async readCommits(w, ids) {
      return (await good.readCommits(w, ids)).map((c) => c && change(c));
    },
  };
}

function readingBodies(good: Storage, change: (body: Uint8Array) => Uint8Array): Storage {
  return {
    ...forward(good),
    async readObjects(w, ids) {
      const found = await good.readObjects(w, ids);
      return found.map((o) => (o && "body" in o ? { ...o, body: change(o.body) } : o));
    },
  };
}

/** Remembers everything that was sent, and finds it when the good store does not. */
function keeping(good: Storage, what: "objects" | "commits", sameWorkflow: boolean): Storage {
  const objects = new Map<string, ObjectRecord>();
  const commits = new Map<string, CommitRecord>();
  const key = (w: string, id: ObjectId) => (sameWorkflow ? `${w}\0${id}` : id);
  return {
    ...forward(good),
    write(batch) {
      for (const o of batch.objects) objects.set(key(batch.workflow, o.id), o);
      for (const m of batch.moves) {
        for (const c of m.commits) commits.set(key(batch.workflow, c.id), c);
      }
      return good.write(batch);
    },
    async readObjects(w, ids) {
      const found = await good.readObjects(w, ids);
      if (what === "commits") return found;
      return found.map((o, i) => o ?? objects.get(key(w, ids[i]!)));
    },
    async readCommits(w, ids) {
      const found = await good.readCommits(w, ids);
      if (what === "objects") return found;
      return found.map((c, i) => c ?? commits.get(key(w, ids[i]!)));
    },
  };
}

/** Answers wrongly what lies below objects. */
function readingBelow(
  good: Storage,
  change: (below: Below, asked: BelowRequest) => Below,
): Storage {
  const right = withReadBelow(good);
  return {
    ...forward(right),
    readBelow: async (w, request) => change(await right.readBelow!(w, request), request),
  };
}

export const canaries: Readonly<Record<string, Canary>> = {
  "ignores what is expected of a ref": (good) => ({
    ...forward(good),
    write: (batch) =>
      good.write({
        ...batch,
        moves: batch.moves.map((m) => ({ ...m, expect: { kind: "any" } })),
      }),
  }),
  "checks the expectation only when the ref exists": (good) => ({
    ...forward(good),
    async write(batch) {
      const names = batch.moves.map((m) => m.ref);
      const rows = await good.readRefs(batch.workflow, { names });
      const there = new Set(rows.filter((row) => row.id !== null).map((row) => row.name));
      const moves = batch.moves.map((m) =>
        there.has(m.ref) ? m : { ...m, expect: { kind: "any" } as const },
      );
      return good.write({ ...batch, moves });
    },
  }),
  "takes a ref that came back for one that never moved": (good) => ({
    ...forward(good),
    write: (batch) =>
      good.write({
        ...batch,
        moves: batch.moves.map((m) =>
          m.expect.kind === "id" ? { ...m, expect: { kind: "id", id: m.expect.id } } : m,
        ),
      }),
  }),
  "compares with the head as it was when the call began": (good) => ({
    ...forward(good),
    async write(batch) {
      const names = batch.moves.map((m) => m.ref);
      const rows = await good.readRefs(batch.workflow, { names });
      await new Promise(setImmediate);
      const moves = batch.moves.map((m) => {
        const head = rows.find((row) => row.name === m.ref)?.id ?? null;
        const held = m.expect.kind === "id" && m.expect.id === head;
        return held ? { ...m, expect: { kind: "any" } as const } : m;
      });
      return good.write({ ...batch, moves });
    },
  }),
  "keeps half of an atomic batch": (good) => ({
    ...forward(good),
    write: (batch) => good.write({ ...batch, atomic: false }),
  }),
  "lets one loser take down the others": (good) => ({
    ...forward(good),
    write: (batch) => good.write({ ...batch, atomic: true }),
  }),
  "answers old refs": (good) => {
    const seen = new Map<string, RefRow[]>();
    return {
      ...forward(good),
      async readRefs(w, pattern) {
        const key = JSON.stringify([w, pattern]);
        const rows = seen.get(key) ?? (await good.readRefs(w, pattern));
        seen.set(key, rows);
        return rows;
      },
    };
  },
  "keeps the objects of a loser": (good) => keeping(good, "objects", true),
  "keeps the commits of a loser": (good) => keeping(good, "commits", true),
  "shares objects between workflows": (good) => {
    const all = new Map<ObjectId, ObjectRecord>();
    return {
      ...forward(good),
      async write(batch) {
        const answer = await good.write(batch);
        const won = answer.moves.some((m) => m.outcome === "moved");
        if (won) for (const o of batch.objects) all.set(o.id, o);
        return answer;
      },
      async readObjects(w, ids) {
        return (await good.readObjects(w, ids)).map((o, i) => o ?? all.get(ids[i]!));
      },
    };
  },
  "loses pending rows by compacting": (good) => ({
    ...forward(good),
    async compact() {
      await good.write({ workflow: "w", objects: [], moves: [], atomic: true, dropPending: [""] });
      return good.compact();
    },
  }),
  "takes more space after compacting": (good) => ({
    ...forward(good),
    async compact() {
      const { bytesBefore } = await good.compact();
      return { bytesBefore, bytesAfter: bytesBefore + 1 };
    },
  }),
  "loses objects": (good) => ({
    ...forward(good),
    write: (batch) => good.write({ ...batch, objects: batch.objects.slice(0, 100) }),
  }),
  "drops an entry of the log": (good) =>
    readingLog(good, (log) => log.filter((entry) => entry.seq !== 2)),
  "answers the log oldest first": (good) => readingLog(good, (log) => [...log].reverse()),
  "does not chain the log": (good) =>
    readingLog(good, (log) => log.map((entry) => ({ ...entry, previous: entry.hash }))),
  "forgets who moved a ref": (good) =>
    readingLog(good, (log) => log.map((entry) => ({ ...entry, actor: "" }))),
  "forgets the trace": (good) =>
    readingLog(good, (log) => log.map((entry) => ({ ...entry, trace: "" }))),
  "pages the log from its end whatever was asked": (good) => ({
    ...forward(good),
    readReflog: (w, ref, { limit }) => good.readReflog(w, ref, { limit }),
  }),
  "lets the highest step go down": (good) => {
    const last = new Map<string, number>();
    const lower = (row: RefRow) => ({ ...row, maxStep: last.get(row.name) ?? row.maxStep });
    return {
      ...readingRefs(good, (rows) => rows.map(lower)),
      async write(batch) {
        const answer = await good.write(batch);
        const moves = answer.moves.map((m, i): MoveAnswer => {
          if (m.outcome !== "moved") return m;
          last.set(m.row.name, batch.moves[i]!.maxStep);
          return { ...m, row: lower(m.row) };
        });
        return { ...answer, moves };
      },
    };
  },
  "starts the sequence anew": (good) =>
    answering(good, (m) => (m.outcome === "moved" ? { ...m, row: { ...m.row, seq: 1 } } : m)),
  "keeps the incarnation over a deletion": (good) => {
    const first = new Map<string, string>();
    const keep = (row: RefRow) => {
      if (!first.has(row.name)) first.set(row.name, row.incarnation);
      return { ...row, incarnation: first.get(row.name)! };
    };
    return answering(good, (m) => (m.outcome === "moved" ? { ...m, row: keep(m.row) } : m));
  },
  "does not see that a batch landed": (good) =>
    answering(good, (m) => (m.outcome === "landed" ? { outcome: "conflict", actual: m.row } : m)),
  "takes a resent batch for a new one": (good) =>
    answering(good, (m) =>
      m.outcome === "landed" && m.row !== null ? { outcome: "moved", row: m.row } : m,
    ),
  "does not tell the actual head": (good) =>
    answering(good, (m) => (m.outcome === "conflict" ? { outcome: "conflict", actual: null } : m)),
  "calls what is missing a conflict": (good) =>
    answering(good, (m) => (m.outcome === "missing" ? { outcome: "conflict", actual: null } : m)),
  "tells only the first id that is missing": (good) =>
    answering(good, (m) => (m.outcome === "missing" ? { ...m, ids: m.ids.slice(0, 1) } : m)),
  "lists deleted refs": (good) => ({
    ...forward(good),
    readRefs: (w, pattern) =>
      good.readRefs(w, "names" in pattern ? pattern : { ...pattern, deleted: true }),
  }),
  "forgets deleted refs": (good) => readingRefs(good, (rows) => rows.filter((r) => r.id !== null)),
  "sorts refs by UTF-16": (good) =>
    readingRefs(good, (rows) => [...rows].sort((a, b) => (a.name < b.name ? -1 : 1))),
  "ignores case in ref names": (good) => ({
    ...forward(good),
    write: (batch) =>
      good.write({
        ...batch,
        moves: batch.moves.map((m) => ({ ...m, ref: m.ref.toLowerCase() })),
      }),
    readRefs: (w, p) =>
      good.readRefs(w, "names" in p ? { names: p.names.map((n) => n.toLowerCase()) } : p),
  }),
  "takes a prefix for a pattern": (good) => ({
    ...forward(good),
    async readRefs(w, p) {
      if ("names" in p) return good.readRefs(w, p);
      const like = new RegExp(`^${p.prefix.replace(/_/g, ".").replace(/%/g, ".*")}`, "u");
      const all = await good.readRefs(w, { ...p, prefix: "" });
      return all.filter((row) => like.test(row.name));
    },
  }),
  "stores bodies as text": (good) =>
    readingBodies(good, (body) => Buffer.from(Buffer.from(body).toString("utf8"))),
  "cuts bodies at NUL": (good) =>
    readingBodies(good, (body) => {
      const end = body.indexOf(0);
      return end < 0 ? body : body.subarray(0, end);
    }),
  "loses empty bodies": (good) => ({
    ...forward(good),
    async readObjects(w, ids) {
      const found = await good.readObjects(w, ids);
      return found.map((o) => (o && "body" in o && o.body.length === 0 ? undefined : o));
    },
  }),
  "calls every object a blob": (good) => ({
    ...forward(good),
    async readObjects(w, ids) {
      const found = await good.readObjects(w, ids);
      return found.map((o) => o && { ...o, type: "blob" as const });
    },
  }),
  "answers in its own order": (good) => ({
    ...forward(good),
    readObjects: (w, ids) => good.readObjects(w, [...ids].sort()),
  }),
  "leaves out what is not stored": (good) => ({
    ...forward(good),
    readObjects: async (w, ids) => (await good.readObjects(w, ids)).filter((o) => o !== undefined),
  }),
  "loses inlined objects": (good) => readingCommits(good, (c) => ({ ...c, inline: [] })),
  "sorts parents": (good) =>
    readingCommits(good, (c) => ({ ...c, parents: [...c.parents].sort() })),
  "keeps dates in 32 bits": (good) => readingCommits(good, (c) => ({ ...c, time: c.time | 0 })),
  "loses external ids": (good) => readingCommits(good, (c) => ({ ...c, externalId: null })),
  "finds ids only by whole bytes": (good) => ({
    ...forward(good),
    findIds: (w, prefix, limit) => good.findIds(w, prefix.slice(0, prefix.length & ~1), limit),
  }),
  "finds objects before commits": (good) => ({
    ...forward(good),
    async findIds(w, prefix, limit) {
      const found = await good.findIds(w, prefix, limit);
      return found.sort((a, b) => (a.type > b.type ? 1 : -1));
    },
  }),
  "finds external ids newest first": (good) => ({
    ...forward(good),
    findExternal: async (w, id) => (await good.findExternal(w, id)).reverse(),
  }),
  "orders the graph by date": (good) => ({
    ...forward(good),
    readGraph: async (w, ids, limit) =>
      (await good.readGraph(w, ids, limit)).sort((a, b) => a.time - b.time),
  }),
  "reads the graph past its limit": (good) => ({
    ...forward(good),
    readGraph: (w, ids, limit) => good.readGraph(w, ids, limit + 1),
  }),
  "swaps the bodies of what lies below": (good) =>
    readingBelow(good, ({ commits, objects }) => ({
      commits,
      objects: objects.map((o, i) => ({ ...objects[objects.length - 1 - i]!, id: o.id })),
    })),
  "invents an object below others": (good) =>
    readingBelow(good, ({ commits, objects }) => ({
      commits,
      objects: [...objects, { id: unknownId(), type: "blob", body: Buffer.from("invented") }],
    })),
  "answers an object below others twice": (good) =>
    readingBelow(good, ({ commits, objects }) => ({
      commits,
      objects: [...objects, ...objects.slice(0, 1)],
    })),
  "answers children before their parents": (good) =>
    readingBelow(good, ({ commits, objects }) => ({ commits, objects: objects.toReversed() })),
  "reads one object too many below others": (good) => {
    const right = withReadBelow(good);
    return {
      ...forward(right),
      readBelow: (w, r) => right.readBelow!(w, { ...r, maxObjects: r.maxObjects + 1 }),
    };
  },
  "reads a line of commits by other parents than the first": (good) => {
    const right = withReadBelow(good);
    return {
      ...forward(right),
      async readBelow(w, request) {
        const { line } = request;
        if (line === undefined || line.commits < 2) return right.readBelow!(w, request);
        const read = await right.readBelow!(w, request);
        const merge = read.commits.find(({ parents }) => parents.length > 1);
        const extra = merge && (await good.readCommits(w, [merge.parents[1]!]))[0];
        return extra === undefined ? read : { ...read, commits: [...read.commits, extra] };
      },
    };
  },
  "reads below objects past the limit of bytes": (good) => {
    const right = withReadBelow(good);
    return {
      ...forward(right),
      readBelow: (w, r) => right.readBelow!(w, { ...r, maxBytes: 2 * r.maxBytes }),
    };
  },
  "reads what is known": (good) => {
    const right = withReadBelow(good);
    return {
      ...forward(right),
      readBelow: (w, r) => right.readBelow!(w, { ...r, known: [] }),
    };
  },
  "reads below objects in another workflow": (good) => {
    const right = withReadBelow(good);
    return {
      ...forward(right),
      readBelow: (w, r) => right.readBelow!(w === "other" ? "w" : w, r),
    };
  },
  "reads below all entries of a root tree": (good) => {
    const right = withReadBelow(good);
    const entries = ["state", "step", "policy"];
    return { ...forward(right), readBelow: (w, r) => right.readBelow!(w, { ...r, entries }) };
  },
  "leaves a commit out when its state is too large": (good) =>
    readingBelow(good, ({ commits, objects }, { maxObjects }) => ({
      commits: maxObjects === 0 ? [] : commits,
      objects,
    })),
  "ends a scan after its first page": (good) => ({
    ...forward(good),
    scanObjects: async (w, after, limit) => ({
      ...(await good.scanObjects(w, after, limit)),
      next: null,
    }),
  }),
  "begins a page with the last row of the one before": (good) => {
    let before: string | null = null;
    return {
      ...forward(good),
      async scanCommits(w, after, limit) {
        const page = await good.scanCommits(w, after === null ? null : before, limit);
        before = after;
        return page;
      },
    };
  },
  "creates a workflow twice": (good) => ({
    ...forward(good),
    async write(batch): Promise<WriteAnswer> {
      const answer = await good.write(batch);
      if (answer.workflow !== "exists" || batch.create === undefined) return answer;
      const { create: _, ...rest } = batch;
      return { ...(await good.write(rest)), workflow: "created" };
    },
  }),
  "makes workflows by itself": (good) => ({
    ...forward(good),
    async write(batch) {
      const answer = await good.write(batch);
      return answer.workflow === "missing" ? { ...answer, workflow: "ok" } : answer;
    },
  }),
  "sorts workflows by UTF-16": (good) => ({
    ...forward(good),
    readWorkflows: async (o) =>
      (await good.readWorkflows(o)).sort((a, b) => (a.id < b.id ? -1 : 1)),
  }),
  "leaves inlined objects out of the usage": (good) => ({
    ...forward(good),
    async usage(w) {
      const usage = await good.usage(w);
      const { rows } = await good.scanCommits(w, null, 1000);
      return { ...usage, objects: usage.objects - rows.flatMap((c) => c.inline).length };
    },
  }),
  "replaces pending rows": (good) => {
    const held = new Map<string, PendingRow>();
    return {
      ...forward(good),
      async write(batch) {
        for (const row of batch.pending ?? []) held.set(nameOf(batch.workflow, row), row);
        return good.write(batch);
      },
      async readPending(w, prefixes) {
        const rows = await good.readPending(w, prefixes);
        return rows.map((row) => held.get(nameOf(w, row)) ?? row);
      },
    };
  },
  "never replaces a pending row": (good) => {
    const held = new Map<string, PendingRow>();
    return {
      ...forward(good),
      async write(batch) {
        for (const row of batch.pending ?? []) {
          const name = nameOf(batch.workflow, row);
          if (!held.has(name)) held.set(name, row);
        }
        return good.write(batch);
      },
      async readPending(w, prefixes) {
        const rows = await good.readPending(w, prefixes);
        return rows.map((row) => held.get(nameOf(w, row)) ?? row);
      },
    };
  },
  "puts pending rows only with moves": (good) => ({
    ...forward(good),
    write: ({ pending, ...batch }) =>
      good.write(batch.moves.length > 0 ? { ...batch, pending } : batch),
  }),
  "leaves pending rows of refused moves out": (good) => ({
    ...forward(good),
    async write({ pending, ...batch }) {
      const answer = await good.write(batch);
      const refused = answer.moves.some(({ outcome }) => outcome !== "moved");
      if (!refused && answer.workflow !== "exists" && answer.workflow !== "missing")
        await good.write({ ...batch, create: undefined, moves: [], objects: [], pending });
      return answer;
    },
  }),
  "drops pending rows after others are put": (good) => ({
    ...forward(good),
    async write({ dropPending, ...batch }) {
      const answer = await good.write(batch);
      await good.write({ ...batch, create: undefined, moves: [], pending: [], dropPending });
      return answer;
    },
  }),
  "drops no pending row": (good) => ({
    ...forward(good),
    write: (batch) => good.write({ ...batch, dropPending: [] }),
  }),
  "takes a prefix of pending rows for a pattern": (good) => ({
    ...forward(good),
    async readPending(w, prefixes) {
      const matches = (key: string, prefix: string) =>
        new RegExp(`^${prefix.replace("%", ".").replace("_", ".")}`, "u").test(key);
      const rows = await good.readPending(w, [""]);
      return rows.filter(({ key }) => prefixes.some((prefix) => matches(key, prefix)));
    },
  }),
  "sorts pending rows as UTF-16": (good) => ({
    ...forward(good),
    async readPending(w, prefixes) {
      const rows = await good.readPending(w, prefixes);
      return rows.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : a.index - b.index));
    },
  }),
  "collects pending rows": (good) => ({
    ...forward(good),
    async sweep(w, ids, by) {
      await good.write({ workflow: w, objects: [], moves: [], atomic: true, dropPending: [""] });
      return good.sweep(w, ids, by);
    },
  }),
  "sweeps what is not condemned": (good) => ({
    ...forward(good),
    async sweep(w, ids, by) {
      await good.condemn(w, ids, 4_000_000_000, by);
      return good.sweep(w, ids, by);
    },
  }),
  "condemns nothing": (good) => ({ ...forward(good), condemn: async () => undefined }),
  "condemns what was seen since": (good) => ({
    ...forward(good),
    condemn: (w, ids, _, by) => good.condemn(w, ids, 4_000_000_000, by),
  }),
  "does not freshen what it has": (good) => {
    const condemned = new Map<ObjectId, number>();
    return {
      ...forward(good),
      async condemn(w, ids, before, by) {
        for (const id of ids) condemned.set(id, by);
        return good.condemn(w, ids, before, by);
      },
      async write(batch) {
        const answer = await good.write(batch);
        for (const { id } of batch.objects) {
          const by = condemned.get(id);
          if (by !== undefined) await good.condemn(batch.workflow, [id], 4_000_000_000, by);
        }
        return answer;
      },
    };
  },
  "takes all collections for one": (good) => ({
    ...forward(good),
    condemn: (w, ids, before) => good.condemn(w, ids, before, 1),
    sweep: (w, ids) => good.sweep(w, ids, 1),
  }),
  "changes a declaration of all workflows": (good) => ({
    ...forward(good),
    async redeclare(w, declared) {
      for (const { id } of await good.readWorkflows({ limit: 99 })) {
        if (id !== w) await good.redeclare(id, declared);
      }
      return good.redeclare(w, declared);
    },
  }),
  "changes half of a declaration": (good) => ({
    ...forward(good),
    async redeclare(w, { classification }) {
      const { retentionPolicy = null } = (await good.readWorkflow(w)) ?? {};
      return good.redeclare(w, { classification, retentionPolicy });
    },
  }),
  "buries nothing": (good) => ({
    ...forward(good),
    redact: (w, redaction) => good.redact(w, { ...redaction, tombstones: [] }),
  }),
  "buries objects, but no copies in commits' rows": (good) => ({
    ...forward(good),
    redact: (w, redaction) => good.redact(w, { ...redaction, inline: [] }),
  }),
  "buries what it has buried before": (good) => {
    const stones = new Map<ObjectId, TombstoneRecord>();
    return {
      ...forward(good),
      async redact(w, redaction) {
        for (const stone of redaction.tombstones) stones.set(stone.id, stone);
        return good.redact(w, redaction);
      },
      readObjects: async (w, ids) =>
        (await good.readObjects(w, ids)).map((o) =>
          o && "tombstone" in o ? (stones.get(o.id) ?? o) : o,
        ),
    };
  },
  "never brings back what is buried": (good) => {
    const stones = new Set<ObjectId>();
    return {
      ...forward(good),
      write: (batch) =>
        good.write({ ...batch, objects: batch.objects.filter(({ id }) => !stones.has(id)) }),
      async redact(w, redaction) {
        for (const { id } of redaction.tombstones) stones.add(id);
        return good.redact(w, redaction);
      },
    };
  },
  "keeps the parents of grafted commits": (good) => ({
    ...forward(good),
    redact: (w, redaction) => good.redact(w, { ...redaction, grafts: [] }),
  }),
  "drops all parents of grafted commits": (good) => ({
    ...forward(good),
    redact: (w, { grafts, ...rest }) =>
      good.redact(w, { ...rest, grafts: grafts.map(({ id }) => ({ id, parents: [] })) }),
  }),
  "keeps pending rows": (good) => ({
    ...forward(good),
    redact: (w, { tombstones, inline, grafts }) => good.redact(w, { tombstones, inline, grafts }),
  }),
  "drops pending rows of a key alike": (good) => ({
    ...forward(good),
    async redact(w, redaction) {
      const redacted = await good.redact(w, redaction);
      const dropPending = (redaction.pending ?? []).map(({ key }) => key);
      await good.write({ workflow: w, objects: [], moves: [], atomic: false, dropPending });
      return redacted;
    },
  }),
  "redacts what was freshened since it was condemned": (good) => ({
    ...forward(good),
    redact: (w, { condemnedBy: _, ...redaction }) => good.redact(w, redaction),
  }),
  "counts a redaction twice": (good) => {
    const before = new Map<string, Redacted>();
    return {
      ...forward(good),
      async redact(w, redaction) {
        const key = JSON.stringify([w, redaction]);
        const redacted = before.get(key) ?? (await good.redact(w, redaction));
        before.set(key, redacted);
        return redacted;
      },
    };
  },
  "reads a head's commit from elsewhere": (good) => ({
    ...forward(good),
    async readHead(w, ref) {
      const head = await good.readHead(w, ref);
      const [parent] = await good.readCommits(w, head?.commit?.parents.slice(0, 1) ?? []);
      return head && { ...head, commit: parent };
    },
  }),
  "never completes a workflow": (good) => ({
    ...forward(good),
    write: (batch) => good.write({ ...batch, complete: undefined }),
  }),
  "forgets when a workflow was completed": (good) => ({
    ...forward(good),
    readWorkflow: async (id) => {
      const record = await good.readWorkflow(id);
      return record && { ...record, completedAt: null };
    },
  }),
  "forgets what a batch needs": (good) => ({
    ...forward(good),
    write: (batch) => good.write({ ...batch, needs: [] }),
  }),
  "sweeps those of some commits that are condemned": (good) => ({
    ...forward(good),
    async sweep(w, ids, by) {
      let removed = 0;
      const spared: ObjectId[] = [];
      for (const id of ids) {
        const swept = await good.sweep(w, [id], by);
        removed += swept.removed;
        spared.push(...swept.spared);
      }
      return { removed, spared };
    },
  }),
  "forgets what refs were moved away from": (good) => ({
    ...forward(good),
    readAbandoned: async () => [],
  }),
  "sees rows of any age": (good) => ({
    ...forward(good),
    scanSeen: (w, type, _, after, limit) => good.scanSeen(w, type, 4_000_000_000, after, limit),
  }),
  "never wakes": (good) => ({
    ...forward(good),
    watch: async () => ({ close: async () => undefined }),
  }),
  "wakes once": (good) => ({
    ...forward(good),
    watch(w, wake) {
      let once: () => void = wake;
      return good.watch(w, () => {
        once();
        once = () => undefined;
      });
    },
  }),
  "goes on waking": (good) => ({
    ...forward(good),
    watch: async (w, wake) => {
      await good.watch(w, wake);
      return { close: async () => undefined };
    },
  }),
  "ends in silence": (good) => {
    let closed = false;
    return {
      ...forward(good),
      watch: (w, wake) => good.watch(w, () => !closed && wake()),
      close() {
        closed = true;
        return good.close();
      },
    };
  },
  "answers after it was closed": (good) => ({ ...forward(good), async close() {} }),
};
