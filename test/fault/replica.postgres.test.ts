import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import {
  type Branch,
  type GovernancePolicy,
  openStore,
  type Store,
  type Workflow,
} from "../../src/index.js";
import { type CountingStorage, counting } from "../../src/storage/decorators/counting.js";
import { CliSandbox } from "../support/cli.js";
import { withClient } from "../support/postgres.js";
import { startServer, type TestServer } from "../support/postgres-server.js";
import { startStandby, type TestStandby } from "../support/postgres-standby.js";
import { agstateError, all } from "../support/stores.js";
import { startProxy } from "../support/tcp-proxy.js";

const POLICY: GovernancePolicy = {
  default: "allow",
  rules: [{ tool: "book", decision: "approve", paths: [], reason: "costs money" }],
};

/** What a replica says of itself wherever it is told. */
const REPLICA = {
  appliedAt: expect.any(Date),
  position: expect.stringMatching(/^[0-9A-F]+\/[0-9A-F]+$/),
  behindMs: expect.any(Number),
};
const READONLY = agstateError("STORE_READONLY", { replica: REPLICA });
const PATIENCE = { timeout: 60_000 };

let primary: TestServer;
let standby: TestStandby;
let store: Store;
let workflow: Workflow;
const cli = new CliSandbox();
const servers: (() => Promise<void>)[] = [];

beforeAll(async () => {
  primary = await startServer();
  servers.unshift(() => primary.remove());
  store = await openStore(primary.url, { governance: POLICY });
  servers.unshift(() => store.close());
  workflow = await store.createWorkflow("w", { state: { n: 0 }, retentionPolicy: "P90D" });
  for (const [agent, n] of [
    ["a", 1],
    ["b", 2],
  ] as const) {
    const branch = await workflow.branch({ agent, branch: "work" });
    await branch.update([{ op: "set", path: "/n", value: n }]);
  }
  await workflow.merge(["a/work", "b/work"], { onConflict: "store" });
  await workflow.tag("before", "canonical");
  await workflow.hold("canonical", { name: "kept", reason: "asked for" });
  const booker = await workflow.branch({ agent: "c", branch: "work" });
  await expect(booker.step({ name: "book", input: {} }, () => "done")).rejects.toEqual(
    agstateError("APPROVAL_NEEDED"),
  );
  standby = await startStandby(primary);
  servers.unshift(() => standby.remove());
});

afterAll(async () => {
  cli.remove();
  for (const stop of servers) await stop();
});

async function opened(url: string, wrap?: Parameters<typeof openStore>[1]): Promise<Store> {
  const one = await openStore(url, { create: false, ...wrap });
  onTestFinished(() => one.close());
  return one;
}

const ask = async (server: { readonly url: string }, text: string, values: unknown[] = []) =>
  withClient(async (client) => (await client.query(text, values)).rows, server.url);

/** The schema's store, at another port. */
function through(port: number): string {
  const url = new URL(primary.url);
  url.port = String(port);
  return url.toString();
}

describe("a replica that is behind", () => {
  it("lets nobody decide by what it says, which is marked with its age, until it has come up (STL-02)", async () => {
    const behind = await (await opened(standby.url)).workflow("w");
    const branch = await behind.branch("a/work");
    const before = await workflow.resolve("a/work");
    await standby.delay("1h");
    onTestFinished(() => standby.hurry());

    const own = await workflow.branch("a/work");
    const { id } = await own.update([{ op: "set", path: "/n", value: 7 }]);
    const committed = Date.now();

    // What is read is old, and says so.
    const from = await behind.readFrom();
    expect(from).toEqual({ stale: true, replica: REPLICA });
    expect(await behind.resolve("a/work")).toBe(before);
    expect(await behind.stateAt("a/work")).toEqual({ n: 1 });
    const asked = Date.now();
    const { replica } = await (await opened(standby.url)).describe();
    expect(replica?.behindMs).toBeGreaterThanOrEqual(asked - committed);
    expect(replica?.appliedAt?.getTime()).toBeLessThanOrEqual(committed);

    // What is decided is refused at once, and on the primary is right.
    await expect(branch.resumePoint()).rejects.toEqual(READONLY);
    await expect(branch.freshness()).rejects.toEqual(READONLY);
    await expect(branch.resume()).rejects.toEqual(READONLY);
    await expect(branch.handoff({ summary: "It is late" })).rejects.toEqual(READONLY);
    await expect(behind.merge(["a/work"], { into: "agents/c/work" })).rejects.toEqual(READONLY);
    await expect(branch.step({ name: "look" }, () => 1)).rejects.toEqual(READONLY);
    expect(await own.resumePoint()).toMatchObject({ inFlight: [] });
    await own.step({ name: "look", action: "read", memoize: true }, () => 1);
    const merged = await workflow.merge(["a/work"], { into: "agents/c/work" });
    expect(merged.status).toBe("fast-forward");
    expect(await workflow.stateAt("c/work")).toEqual({ n: 7 });
    expect(await workflow.readFrom()).toEqual({ stale: false, replica: null });
    expect((await store.describe()).replica).toBeNull();

    // A merge base of commits that are there is what it is; by a branch's name it is that of the old head.
    expect(await behind.mergeBases(before, "canonical")).toEqual([await behind.resolve("before")]);
    await expect(behind.mergeBases(id, "canonical")).rejects.toEqual(
      agstateError("REVISION_NOT_FOUND"),
    );

    const [{ reached }] = (await ask(primary, "SELECT pg_current_wal_lsn() AS reached")) as [
      { reached: string },
    ];
    await standby.hurry();
    const isThere = async () => {
      const { position } = (await behind.readFrom()).replica ?? {};
      const [row] = await ask(standby, "SELECT $1::pg_lsn >= $2::pg_lsn AS there", [
        position,
        reached,
      ]);
      return row.there;
    };
    await expect.poll(isThere, PATIENCE).toBe(true);
    expect(await behind.stateAt("a/work")).toEqual({ n: 7 });
    expect(await behind.isAncestor(id, "a/work")).toBe(true);
    // It still is a replica.
    await expect(branch.resumePoint()).rejects.toEqual(READONLY);
  });
});

/** Methods that read, and those that TypeScript alone keeps private. */
const WORKFLOW = {
  reads: [
    ...["info", "internals", "readFrom", "canonical", "branch", "refs", "resolve", "commitAt"],
    ...["stateAt", "stepRecord", "findExternal", "log", "diff", "changes", "blame", "aheadBehind"],
    ...[
      "merged",
      "reflog",
      "watch",
      "audit",
      "verifyAudit",
      "signAuditCheckpoint",
      "mergeBases",
      "handoffs",
      "sessionAt",
    ],
    ...["isAncestor", "storedMerges", "storedMerge", "mergeRecord", "sideEffects", "reviews"],
    ...["review", "holds", "keyInfo", "fsck", "planRetention", "stats", "usage"],
  ],
  own: ["createBranch", "openRef", "handle", "deletedRef", "headToLeave", "deleteRef", "telling"],
};
const BRANCH = {
  reads: [
    ...["head", "gathered", "loadedHead", "incarnation", "seq", "leaseSignal", "minStep", "flush"],
    ...[
      "refresh",
      "policies",
      "state",
      "log",
      "reflog",
      "steps",
      "lease",
      "handedOff",
      "boundaries",
      "stepJournal",
      "guard",
      "onto",
    ],
  ],
  own: [
    ...[
      "appendSteps",
      "putSteps",
      "putEnvelope",
      "putUnasked",
      "checkpoint",
      "exclusive",
      "write",
      "writeTold",
      "isNeeded",
    ],
    ...["mergeParents"],
  ],
};
const STORE = {
  reads: ["prepareWorkflow", "workflow", "workflows", "describe", "readFrom", "checkStructure"],
  own: ["close"],
};
const MERGE = { reads: ["name", "info", "conflicts", "openPaths"], own: [] };
const REVIEW = {
  reads: ["id", "info", "changed"],
  own: ["foundOut", "decide", "notOpen"],
};

type Decisions<Of> = Readonly<Record<string, (of: Of) => unknown>>;

const ON_WORKFLOW: Decisions<Workflow> = {
  "branch, which makes one": (w) => w.branch({ agent: "d", branch: "new" }),
  deleteBranch: (w) => w.deleteBranch("a/work"),
  tag: (w) => w.tag("after", "canonical"),
  deleteTag: (w) => w.deleteTag("before"),
  merge: (w) => w.merge(["a/work"]),
  preview: (w) => w.preview(["a/work"]),
  promote: (w) => w.promote("a/work"),
  cherryPick: (w) => w.cherryPick("a/work"),
  revert: (w) => w.revert("canonical"),
  reset: (w) => w.reset("a/work", "canonical"),
  speculate: (w) =>
    w.speculate({ strategies: { one: async () => 1 }, judge: async () => "one" } as never),
  run: async (w) => w.run(await w.branch("a/work"), async () => 1),
  complete: (w) => w.complete(),
  hold: (w) => w.hold("canonical", { reason: "asked for" }),
  releaseHold: (w) => w.releaseHold("kept", { reason: "over" }),
  redeclare: (w) => w.redeclare({ retentionPolicy: "P1D" }, { reason: "over" }),
  migrateState: (w) => w.migrateState(),
  rotateKey: (w) => w.rotateKey(),
  destroyKey: (w) => w.destroyKey({ reason: "over" } as never),
  erase: (w) => w.erase({ paths: ["/n"], reason: "asked for" } as never),
  gc: (w) => w.gc(),
  applyRetention: (w) => w.applyRetention(),
};
const ON_BRANCH: Decisions<Branch> = {
  commit: (b) => b.commit({ state: { n: 9 } }),
  update: (b) => b.update([{ op: "set", path: "/n", value: 9 }]),
  setPolicies: (b) => b.setPolicies({ "/n": "ours" }),
  step: (b) => b.step({ name: "look", action: "read" }, () => 1),
  sealStep: (b) => b.sealStep(1, { output: 1 }),
  acquire: (b) => b.acquire(),
  resumePoint: (b) => b.resumePoint(),
  handoff: (b) => b.handoff({ summary: "It is late" }),
  freshness: (b) => b.freshness(),
  resume: (b) => b.resume(),
};

/** All that an object's class has, but what makes it. */
const namesOf = (one: object) =>
  Object.getOwnPropertyNames(Object.getPrototypeOf(one)).filter((name) => name !== "constructor");

describe("a replica that has come up", () => {
  let counter: CountingStorage;

  async function replica(): Promise<{ store: Store; workflow: Workflow }> {
    const wrap: NonNullable<Parameters<typeof openStore>[1]>["wrap"] = (storage) => {
      counter = counting(storage);
      return counter.storage;
    };
    const one = await opened(standby.url, { wrap });
    return { store: one, workflow: await one.workflow("w") };
  }

  /** Holds that each of these is refused, by asking what the server is and nothing else. */
  async function areRefused<Of>(of: Of, decisions: Decisions<Of>): Promise<void> {
    for (const [name, decide] of Object.entries(decisions)) {
      const error = await refusalOf(() => decide(of));
      expect([name, error]).toEqual([name, READONLY]);
    }
  }

  async function refusalOf(work: () => unknown): Promise<unknown> {
    counter.reset();
    try {
      await work();
      return "it was done";
    } catch (error) {
      const { calls } = counter.counts();
      const asked = Object.entries(calls).filter(([, n]) => n > 0);
      // A handle that is to be opened, or a branch that is to be made, is looked up first.
      expect(asked.filter(([name]) => name !== "readHead")).toEqual([["describe", 1]]);
      return error;
    }
  }

  it("refuses every call that decides or writes, before anything is done for it, and no other", async () => {
    const { store: read, workflow: old } = await replica();
    const branch = await old.branch("a/work");
    const merge = await old.storedMerge();
    const [review] = await old.reviews({ open: true });
    const known = [
      [old, WORKFLOW, ON_WORKFLOW],
      [branch, BRANCH, ON_BRANCH],
      [
        read,
        STORE,
        { createWorkflow: (s: Store) => s.createWorkflow("x"), compact: (s: Store) => s.compact() },
      ],
      [
        merge,
        MERGE,
        {
          resolve: (m: typeof merge) => m.resolve("/n", { take: "theirs" }),
          continue: (m: typeof merge) => m.continue(),
          abort: (m: typeof merge) => m.abort(),
        },
      ],
      [
        review,
        REVIEW,
        {
          approve: (r: NonNullable<typeof review>) => r.approve({ actor: "eve" }),
          discard: (r: NonNullable<typeof review>) => r.discard({ actor: "eve" }),
        },
      ],
    ] as const;
    for (const [of, { reads, own }, decisions] of known) {
      // Whoever adds a method says here which of the two it is.
      const decides = Object.keys(decisions).filter((name) => !name.includes(","));
      expect([...reads, ...own, ...decides].sort()).toEqual(namesOf(of as object).sort());
      await areRefused(of as never, decisions as Decisions<unknown>);
    }
  });

  it("is read by all else", async () => {
    const { workflow: old } = await replica();
    expect((await all(old.log())).length).toBeGreaterThan(3);
    expect((await old.fsck()).problems).toEqual([]);
    expect((await old.verifyAudit()).problems).toEqual([]);
    expect((await all(old.audit())).length).toBeGreaterThan(3);
    expect(await old.diff("canonical", "a/work")).toHaveLength(1);
    expect(await old.blame("a/work", "/n")).toHaveLength(1);
    expect((await old.gc({ dryRun: true })).dryRun).toBe(true);
    expect((await old.planRetention()).dryRun).toBe(true);
    expect(await old.holds()).toHaveLength(1);
  });

  it("is not behind while the primary has nothing to say, and by nobody knows how much while it is not heard of", async () => {
    const { store: read } = await replica();
    const behind = async () => (await read.readFrom()).replica?.behindMs;
    await expect.poll(behind, PATIENCE).toBe(0);
    await primary.crash();
    try {
      await expect.poll(behind, PATIENCE).toBeNull();
      expect(await read.readFrom()).toEqual({
        stale: true,
        replica: { ...REPLICA, behindMs: null },
      });
    } finally {
      await primary.start();
    }
    await expect.poll(behind, PATIENCE).toBe(0);
  });

  it("is known through a pooler that does not tell of it", async () => {
    const { port } = await startProxy(
      "127.0.0.1",
      Number(new URL(standby.url).port),
      "in_hot_standby",
    );
    const hidden = await (await opened(through(port))).workflow("w");
    await expect(hidden.merge(["a/work"])).rejects.toEqual(READONLY);
  });

  it("is known where a name that led to the primary leads to it, before anything is decided there", async () => {
    const proxy = await startProxy("127.0.0.1", Number(new URL(primary.url).port));
    const moved = await (await opened(through(proxy.port))).workflow("w");
    expect((await moved.preview(["a/work"])).status).toBe("fast-forward");
    proxy.leadTo(Number(new URL(standby.url).port));
    proxy.cut();
    // Whatever is read tells.
    expect(await moved.stateAt("canonical")).toEqual({ n: 0 });
    await expect(moved.preview(["a/work"])).rejects.toEqual(READONLY);
    proxy.leadTo(Number(new URL(primary.url).port));
    proxy.cut();
    expect((await moved.preview(["a/work"])).status).toBe("fast-forward");
  });

  it("is known, where nothing else tells of it, once it has refused a write", async () => {
    const own = Number(new URL(primary.url).port);
    const proxy = await startProxy("127.0.0.1", own, "in_hot_standby");
    const moved = await (await opened(through(proxy.port))).workflow("w");
    const branch = await moved.branch("b/work");
    proxy.leadTo(Number(new URL(standby.url).port));
    proxy.cut();
    const late = branch.commit({ state: { n: 9 } });
    await expect(late).rejects.toEqual(agstateError("STORE_READONLY", { code: "25006" }));
    await expect(moved.preview(["a/work"])).rejects.toEqual(READONLY);
  });

  it("is told of by the command line in one line, whatever is read, and refused what decides", () => {
    const on = (...args: string[]) => cli.run(["--store", standby.url, "-w", "w", ...args]);
    for (const args of [["log"], ["status"], ["audit", "verify"]]) {
      const { status, stdout, stderr } = on(...args);
      expect([args, status]).toEqual([args, 0]);
      expect(stdout).not.toBe("");
      expect(stderr).toMatch(/^agstate: read from a replica, .+ \(at [0-9A-F]+\/[0-9A-F]+\)\n$/);
    }
    const json = on("--json", "log");
    expect(json.status).toBe(0);
    expect(JSON.parse(json.stderr)).toEqual({
      warning: {
        message: expect.stringContaining("read from a replica"),
        replica: { ...REPLICA, appliedAt: expect.stringMatching(/^\d{4}-.*Z$/) },
      },
    });
    for (const line of json.stdout.trim().split("\n")) expect(JSON.parse(line).id).toBeDefined();

    const refused = on("merge", "a/work");
    expect(refused.status).toBe(5);
    expect(refused.stdout).toBe("");
    expect(refused.stderr).toMatch(
      /to merge, name the primary in the store's URL \(STORE_READONLY\)\n$/,
    );
    const exported = on("export", "--git", "copy.git");
    expect(exported.status).toBe(0);
    expect(exported.stderr).toContain("this export is not on record");

    expect(cli.run(["--store", primary.url, "-w", "w", "log"]).stderr).toBe("");
  });

  it("is a primary for handles that are open when it is promoted", async () => {
    const { store: read, workflow: old } = await replica();
    const branch = await old.branch("a/work");
    await expect(branch.resumePoint()).rejects.toEqual(READONLY);
    await ask(standby, "SELECT pg_promote()");
    expect(await branch.resumePoint()).toMatchObject({ inFlight: [] });
    await branch.update([{ op: "set", path: "/n", value: 8 }]);
    expect((await old.merge(["a/work"])).status).toBe("fast-forward");
    expect(await old.stateAt("canonical")).toEqual({ n: 8 });
    expect(await old.readFrom()).toEqual({ stale: false, replica: null });
    expect((await read.describe()).replica).toBeNull();
    // Nothing is asked any more before a decision.
    counter.reset();
    await branch.resumePoint();
    expect(counter.counts().calls.describe).toBe(0);
    const { stderr } = cli.run(["--store", standby.url, "-w", "w", "log"]);
    expect(stderr).toBe("");
  });
});
