import { execFileSync, spawnSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it, onTestFinished } from "vitest";
import type { ObjectId } from "../../src/core/ids.js";
import { reflogEntryText } from "../../src/core/reflog-entry.js";
import {
  type AuditReport,
  checkpointText,
  type Store,
  verifyAuditCheckpoint,
  type Workflow,
} from "../../src/index.js";
import { digestText } from "../../src/objects/hash.js";
import { schemaOf, withClient } from "../support/postgres.js";
import { agstateError, all, BACKENDS, makeStore } from "../support/stores.js";

const HAS_OPENSSL = spawnSync("openssl", ["version"]).status === 0;

/** A pair of keys as openssl writes them. */
function newKeys(): { readonly privateKey: string; readonly publicKey: string } {
  return generateKeyPairSync("ed25519", {
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
    publicKeyEncoding: { type: "spki", format: "pem" },
  });
}

const KEYS = newKeys();

/** What was found, as `kind subject`. */
function found({ problems }: AuditReport): string[] {
  return problems.map(({ kind, subject }) => `${kind} ${subject}`);
}

/** Whoever can write to the tables themselves. */
interface Intruder {
  /** Runs a statement; `?` stands for values. Something must change. */
  run(sql: string, ...values: unknown[]): Promise<void>;
  /** The condition that names a ref in `reflog`, and in the log columns of commits. */
  readonly ofRef: (name: string) => string;
  readonly commits: string;
}

function intruder(backend: string, url: string, directory: string): Intruder {
  if (backend === "sqlite") {
    return {
      commits: "objects",
      ofRef: (name) => `(SELECT ref FROM refs WHERE name = '${name}')`,
      run: async (sql, ...values) => {
        const db = new Database(join(directory, "store.db"));
        try {
          expect(db.prepare(sql).run(...values).changes).toBeGreaterThan(0);
        } finally {
          db.close();
        }
      },
    };
  }
  return {
    commits: "commits",
    ofRef: (name) => `'${name}'`,
    run: (sql, ...values) =>
      withClient(async (client) => {
        await client.query(`SET search_path TO ${schemaOf(url)}`);
        let n = 0;
        const text = sql.replaceAll("?", () => `$${++n}`);
        expect((await client.query(text, values)).rowCount).toBeGreaterThan(0);
      }),
  };
}

const TAG = "refs/tags/t";
const BRANCH = "refs/heads/agents/a/b";

/** A closed store of a workflow with some history, and what makes it anew. */
async function begin(backend: (typeof BACKENDS)[number]) {
  const { store, url, directory, another } = await makeStore(backend);
  const workflow = await store.createWorkflow("w");
  const branch = await workflow.branch({ agent: "a", branch: "b" });
  await branch.step({ name: "look", action: "write", input: "in" }, () => "out");
  await branch.commit({ state: { n: 1 } });
  for (const n of [1, 2]) {
    await workflow.tag("t", "canonical", { reason: `made ${n}` });
    await workflow.deleteTag("t", { reason: `gone ${n}` });
  }
  await workflow.tag("t", "a/b", { reason: "made 3" });
  const checkpoint = checkpointText(await workflow.signAuditCheckpoint(KEYS.privateKey));
  const entries = {
    tag: await workflow.internals.storage.readReflog("w", TAG, { limit: 10 }),
    branch: await workflow.internals.storage.readReflog("w", BRANCH, { limit: 10 }),
  };
  expect((await workflow.verifyAudit()).problems).toEqual([]);
  await store.close();
  const open = async (): Promise<{ store: Store; workflow: Workflow }> => {
    const opened = await another();
    return { store: opened, workflow: await opened.workflow("w") };
  };
  return { ...intruder(backend, url, directory), entries, open, checkpoint, directory };
}

type Begun = Awaited<ReturnType<typeof begin>>;

function rawOf(id: string): Buffer {
  return Buffer.from(id, "hex");
}

/** The statement that puts another byte in place of the last one of a commit's column. */
function lastByte({ commits }: Begun, column: string): string {
  const cut = `substr(${column}, 1, length(${column}) - 1)`;
  const put = commits === "objects" ? `CAST(${cut} || x'58' AS BLOB)` : `${cut} || '\\x58'`;
  return `UPDATE ${commits} SET ${column} = ${put} WHERE id = ?`;
}

/** By what is done: the damage, and what must be found without any checkpoint. */
const DAMAGES: Record<
  string,
  [(it: Begun) => Promise<void>, string[] | ((it: Begun) => string[])]
> = {
  "a byte flipped in an entry": [
    (it) => it.run(`UPDATE reflog SET reason = 'made 4' WHERE reason = 'made 2'`),
    [`bad-log ${TAG}`],
  ],
  "a byte flipped in the log columns of a commit": [
    (it) =>
      it.run(`UPDATE ${it.commits} SET log_actor = 'A' WHERE log_actor = 'a' AND log_seq = 3`),
    [`bad-log ${BRANCH}`],
  ],
  "a byte flipped in a ref's row": [
    (it) => it.run(`UPDATE refs SET log_hash = ? WHERE name = '${TAG}'`, rawOf("07".repeat(32))),
    [`bad-log ${TAG}`],
  ],
  "another incarnation in a ref's row": [
    (it) => it.run(`UPDATE refs SET incarnation = ? WHERE name = '${TAG}'`, rawOf("07".repeat(16))),
    [`bad-log ${TAG}`],
  ],
  "the first entry removed": [
    (it) => it.run(`DELETE FROM reflog WHERE reason = 'made 1'`),
    [`bad-log ${TAG}`],
  ],
  "an entry in the middle removed": [
    (it) => it.run(`DELETE FROM reflog WHERE reason = 'made 2'`),
    [`bad-log ${TAG}`],
  ],
  "the last entry removed": [
    (it) => it.run(`DELETE FROM reflog WHERE reason = 'made 3'`),
    [`bad-log ${TAG}`],
  ],
  "two entries in each other's place": [
    async (it) => {
      for (const [from, to] of [
        [1, -1],
        [3, 1],
        [-1, 3],
      ]) {
        await it.run(
          `UPDATE reflog SET seq = ? WHERE seq = ? AND ref = ${it.ofRef(TAG)}`,
          to,
          from,
        );
      }
    },
    // Of both the hash, and of one more that its incarnation is not that of the one after it.
    [`bad-log ${TAG}`],
  ],
  "the time of an entry edited": [
    (it) => it.run(`UPDATE reflog SET time = time + 1 WHERE reason = 'gone 1'`),
    [`bad-log ${TAG}`],
  ],
  "the time of an entry in a commit's row edited": [
    (it) =>
      it.run(
        `UPDATE ${it.commits} SET log_time = log_time - 1 WHERE log_seq = 4 AND log_actor = 'a'`,
      ),
    [`bad-log ${BRANCH}`],
  ],
  "the date of a commit edited": [
    (it) =>
      it.run(
        `UPDATE ${it.commits} SET time = time + 1 WHERE id = ?`,
        rawOf(it.entries.branch[0]!.new),
      ),
    (it) => [`bad-commit ${it.entries.branch[0]!.new}`],
  ],
  "a byte flipped in the record of a step": [
    (it) => it.run(lastByte(it, "inline"), rawOf(it.entries.branch[1]!.new)),
    (it) => [`bad-commit ${it.entries.branch[1]!.new}`],
  ],
  "a byte flipped in a commit": [
    (it) => it.run(lastByte(it, "body"), rawOf(it.entries.branch[1]!.new)),
    (it) => [`bad-commit ${it.entries.branch[1]!.new}`],
  ],
};

const SERVERS = BACKENDS.filter((backend) => backend !== "memory");

describe.each(SERVERS)("audit verify of a damaged store on %s", (backend) => {
  it.each(Object.keys(DAMAGES))("finds it, and nothing else: %s", async (damage) => {
    const it = await begin(backend);
    const [damaging, expected] = DAMAGES[damage]!;
    await damaging(it);
    const { workflow } = await it.open();
    const report = await workflow.verifyAudit();
    expect(new Set(found(report))).toEqual(
      new Set(typeof expected === "function" ? expected(it) : expected),
    );
  });

  it("finds a flipped byte in the record of a review, and one that is gone", async () => {
    const { store, url, directory, another } = await makeStore(backend, {
      governance: { rules: [{ tool: "rm", decision: "deny" }] },
    });
    const workflow = await store.createWorkflow("w");
    const branch = await workflow.branch({ agent: "a", branch: "b" });
    const long = "x".repeat(3000);
    await expect(branch.step({ name: "rm", input: { long } }, () => 1)).rejects.toThrow();
    const [review] = await workflow.reviews();
    const { state } = (await workflow.internals.commitAt(review!.info.commit)).root;
    await store.close();
    const { run } = intruder(backend, url, directory);
    await run("UPDATE objects SET body = ? WHERE id = ?", Buffer.from("{}"), rawOf(state!.id));
    const damaged = async () => {
      const reopened = await (await another()).workflow("w");
      expect(found(await reopened.verifyAudit())).toEqual([`bad-commit ${review!.info.commit}`]);
      // The stream tells of the move, as far as the log has it.
      const [event] = await all(reopened.audit({ refs: `reviews/${review!.id}` }));
      expect(event).toMatchObject({ kind: "moved", actor: "a", steps: null, facts: null });
    };
    await damaged();
    await run("DELETE FROM objects WHERE id = ?", rawOf(state!.id));
    await damaged();
  });

  /** Makes a log anew from an entry on, so that all of it fits. */
  async function recompute(it: Begun, fromSeq: number, reason: string): Promise<void> {
    let previous = "";
    for (const entry of [...it.entries.tag].reverse()) {
      const { hash, ...rest } = entry;
      const made =
        entry.seq < fromSeq
          ? rest
          : {
              ...rest,
              ...(entry.seq === fromSeq ? { reason } : {}),
              previous: previous as ObjectId,
            };
      const actual = digestText(reflogEntryText(made));
      if (entry.seq < fromSeq) expect(actual).toBe(hash);
      else {
        await it.run(
          `UPDATE reflog SET reason = ?, previous = ? WHERE seq = ${entry.seq} AND ref = ${it.ofRef(TAG)}`,
          made.reason,
          rawOf(made.previous),
        );
      }
      previous = actual;
    }
    await it.run(`UPDATE refs SET log_hash = ? WHERE name = '${TAG}'`, rawOf(previous));
  }

  it("finds a chain that was computed anew by a checkpoint alone, also after it grew", async () => {
    const it = await begin(backend);
    await recompute(it, 3, "innocent");
    const { workflow } = await it.open();
    expect(await workflow.fsck()).toMatchObject({ problems: [] });
    expect(found(await workflow.verifyAudit())).toEqual([]);
    const checkpoint = { document: it.checkpoint, publicKey: KEYS.publicKey };
    expect(found(await workflow.verifyAudit({ checkpoint }))).toEqual([`rewritten ${TAG}`]);
    await workflow.deleteTag("t");
    expect(found(await workflow.verifyAudit({ checkpoint }))).toEqual([`rewritten ${TAG}`]);
  });

  it("finds a ref that is gone with its log by a checkpoint alone", async () => {
    const it = await begin(backend);
    await it.run(`DELETE FROM reflog WHERE ref = ${it.ofRef(TAG)}`);
    await it.run(`DELETE FROM refs WHERE name = '${TAG}'`);
    const { workflow } = await it.open();
    expect(found(await workflow.verifyAudit())).toEqual([]);
    const checkpoint = { document: it.checkpoint, publicKey: KEYS.publicKey };
    expect(found(await workflow.verifyAudit({ checkpoint }))).toEqual([`vanished ${TAG}`]);
  });

  it("finds a log that was put back to an older state by a checkpoint alone", async () => {
    const it = await begin(backend);
    const [last, before] = it.entries.tag;
    await it.run(`DELETE FROM reflog WHERE reason = 'made 3'`);
    await it.run(
      `UPDATE refs SET id = NULL, seq = ?, log_hash = ?, incarnation = ? WHERE name = '${TAG}'`,
      before!.seq,
      rawOf(last!.previous),
      rawOf(before!.incarnation),
    );
    const { workflow } = await it.open();
    expect(found(await workflow.verifyAudit())).toEqual([]);
    const checkpoint = { document: it.checkpoint, publicKey: KEYS.publicKey };
    expect(found(await workflow.verifyAudit({ checkpoint }))).toEqual([`rolled-back ${TAG}`]);
    // What has another entry there meanwhile is told apart.
    await workflow.tag("t", "canonical");
    expect(found(await workflow.verifyAudit({ checkpoint }))).toEqual([`rewritten ${TAG}`]);
  });

  it("says that canonical is gone without any checkpoint", async () => {
    const it = await begin(backend);
    await it.run(`DELETE FROM refs WHERE name = 'refs/heads/canonical'`);
    const { workflow } = await it.open();
    expect(found(await workflow.verifyAudit())).toEqual(["bad-ref refs/heads/canonical"]);
  });

  it("does not stop the stream where a commit is damaged, but where an entry is lost", async () => {
    const it = await begin(backend);
    const { new: id } = it.entries.branch[1]!;
    await it.run(`UPDATE ${it.commits} SET body = ? WHERE id = ?`, Buffer.from("tree"), rawOf(id));
    const first = await it.open();
    const events = await all(first.workflow.audit({ refs: BRANCH }));
    expect(events.map(({ kind, steps }) => [kind, steps?.length ?? null])).toContainEqual([
      "commit",
      null,
    ]);
    await first.store.close();
    await it.run(`DELETE FROM reflog WHERE reason = 'made 2'`);
    const { workflow } = await it.open();
    const lost = agstateError("STORE_DAMAGED", { ref: TAG, seq: 3 });
    await expect(all(workflow.audit())).rejects.toEqual(lost);
  });
});

describe("a backup put back", () => {
  it("is found by the checkpoint signed since, and not by itself", async () => {
    const { store, directory, another } = await makeStore("sqlite");
    const workflow = await store.createWorkflow("w");
    await workflow.tag("t", "canonical");
    await store.close();
    const backup = mkdtempSync(join(tmpdir(), "agstate-backup-"));
    onTestFinished(() => rmSync(backup, { recursive: true, force: true }));
    cpSync(directory, backup, { recursive: true });
    const later = await (await another()).workflow("w");
    await (await later.canonical()).commit({ state: { n: 1 } });
    const trail = later.audit();
    await all(trail);
    const document = checkpointText(await later.signAuditCheckpoint(KEYS.privateKey));
    await later.internals.storage.close();
    cpSync(backup, directory, { recursive: true });
    for (const file of ["store.db-wal", "store.db-shm"])
      rmSync(join(directory, file), { force: true });
    const old = await (await another()).workflow("w");
    expect(found(await old.verifyAudit())).toEqual([]);
    const report = await old.verifyAudit({ checkpoint: { document, publicKey: KEYS.publicKey } });
    expect(found(report)).toEqual(["rolled-back refs/heads/canonical"]);
    // Whoever followed the stream is told as well.
    await expect(old.audit({ from: trail.cursor }).next()).rejects.toEqual(
      agstateError("INVALID_ARGUMENT", { ref: "refs/heads/canonical", seen: 2, last: 1 }),
    );
  });
});

describe.each(BACKENDS)("a checkpoint on %s", (backend) => {
  it("vouches for what grew, deleted and collected refs included", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w");
    const branch = await workflow.branch({ agent: "a", branch: "b" });
    await branch.commit({ state: { n: 1 } });
    await workflow.deleteBranch("a/b");
    const checkpoint = await workflow.signAuditCheckpoint(KEYS.privateKey);
    expect(checkpoint.statement.refs.map(({ name, seq }) => [name, seq])).toEqual([
      ["refs/audit/workflow", 1],
      [BRANCH, 3],
      ["refs/heads/canonical", 1],
    ]);
    const verify = () =>
      workflow.verifyAudit({
        checkpoint: { document: checkpointText(checkpoint), publicKey: KEYS.publicKey },
      });
    expect(await verify()).toMatchObject({
      problems: [],
      refs: 3,
      entries: 5,
      checkpoint: { refs: 3, date: new Date(checkpoint.statement.time) },
    });
    await workflow.branch({ agent: "a", branch: "b" });
    await (await workflow.canonical()).commit({ state: { n: 2 } });
    await workflow.gc({ graceMs: 0 });
    await workflow.tag("t", "canonical");
    expect((await verify()).problems).toEqual([]);
  });

  it("is refused when it was changed, is of another key, store or workflow, or none at all", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w");
    const other = await store.createWorkflow("other");
    const { store: elsewhere } = await makeStore(backend);
    const namesake = await elsewhere.createWorkflow("w");
    const checkpoint = await workflow.signAuditCheckpoint(KEYS.privateKey);
    const text = checkpointText(checkpoint);
    const { publicKey } = KEYS;
    const refusedFor = (problem: string) => agstateError("CHECKPOINT_REFUSED", { problem });
    const against = (at: Workflow, document: string, key = publicKey) =>
      at.verifyAudit({ checkpoint: { document, publicKey: key } });
    expect((await against(workflow, text)).problems).toEqual([]);
    await expect(against(other, text)).rejects.toEqual(refusedFor("workflow"));
    await expect(against(namesake, text)).rejects.toEqual(refusedFor("store"));
    await expect(against(workflow, text, newKeys().publicKey)).rejects.toEqual(
      refusedFor("signature"),
    );
    const { statement } = checkpoint;
    const changed = (change: object) =>
      JSON.stringify({ ...checkpoint, statement: { ...statement, ...change } });
    for (const change of [
      { refs: statement.refs.slice(1) },
      { refs: statement.refs.map((ref) => ({ ...ref, seq: ref.seq + 1 })) },
      { time: statement.time + 1 },
      { workflow: "other" },
    ]) {
      await expect(against(workflow, changed(change))).rejects.toEqual(refusedFor("signature"));
    }
    const unsigned = { ...checkpoint, signature: { ...checkpoint.signature, algorithm: "none" } };
    for (const document of [
      "",
      "{}",
      "[1]",
      text.slice(0, -5),
      changed({ extra: 1 }),
      changed({ v: 2 }),
      changed({ refs: [{}] }),
      JSON.stringify(unsigned),
    ]) {
      await expect(against(workflow, document), document).rejects.toEqual(refusedFor("form"));
    }
    // What is written otherwise and says the same is the same.
    const spaced = JSON.stringify(JSON.parse(text), null, 2);
    expect(verifyAuditCheckpoint(spaced, publicKey)).toEqual(checkpoint.statement);
  });

  it("takes Ed25519 keys in PEM only, and never tells a key", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w");
    const rsa = generateKeyPairSync("rsa", {
      modulusLength: 2048,
      privateKeyEncoding: { type: "pkcs8", format: "pem" },
      publicKeyEncoding: { type: "spki", format: "pem" },
    });
    for (const key of ["", "SECRET-KEY", rsa.privateKey, KEYS.publicKey]) {
      const error: Error = await workflow.signAuditCheckpoint(key).then(
        () => expect.fail("it was signed"),
        (thrown) => thrown,
      );
      expect(error).toEqual(agstateError("INVALID_ARGUMENT", { key: "private" }));
      expect(JSON.stringify([error.message, error])).not.toContain("SECRET");
    }
    const text = checkpointText(await workflow.signAuditCheckpoint(KEYS.privateKey));
    expect(() => verifyAuditCheckpoint(text, rsa.publicKey)).toThrow(
      expect.objectContaining({ code: "INVALID_ARGUMENT" }),
    );
  });

  it("takes times that run backwards or ahead for notices, beyond the tolerance", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w");
    const now = Date.now();
    for (const [i, ms] of [0, -4_000, -20_000, 60_000].entries()) {
      Object.assign(workflow.internals.context, { now: () => now + ms });
      if (i % 2 === 0) await workflow.tag("t", "canonical");
      else await workflow.deleteTag("t");
    }
    Object.assign(workflow.internals.context, { now: () => now });
    const { problems, notices } = await workflow.verifyAudit();
    expect(problems).toEqual([]);
    expect(notices.map(({ subject, detail }) => `${subject} ${detail}`)).toEqual([
      `${TAG} entry 4 is dated 60000 ms from now: a clock is wrong`,
      `${TAG} entry 3 is dated 16000 ms before entry 2: a clock was wrong`,
    ]);
    expect((await workflow.verifyAudit({ toleranceMs: 60_000 })).notices).toEqual([]);
    await expect(workflow.verifyAudit({ toleranceMs: -1 })).rejects.toEqual(
      agstateError("INVALID_ARGUMENT"),
    );
  });
});

describe.skipIf(!HAS_OPENSSL)("openssl", () => {
  it("makes the keys, and verifies the signature of a statement's canonical text", async () => {
    const directory = mkdtempSync(join(tmpdir(), "agstate-openssl-"));
    onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
    const openssl = (...args: string[]) =>
      execFileSync("openssl", args, { cwd: directory, encoding: "utf8", stdio: "pipe" });
    openssl("genpkey", "-algorithm", "ed25519", "-out", "private.pem");
    openssl("pkey", "-in", "private.pem", "-pubout", "-out", "public.pem");
    const { store } = await makeStore("memory");
    const workflow = await store.createWorkflow("Reise für 2 \u{1f600}");
    const key = openssl("pkey", "-in", "private.pem");
    const text = checkpointText(await workflow.signAuditCheckpoint(key));
    const { signature } = JSON.parse(text);
    const statement = /"statement":(.*)\}\n$/.exec(text)![1]!;
    writeFileSync(join(directory, "statement"), statement);
    writeFileSync(join(directory, "signature"), Buffer.from(signature.value, "base64"));
    const verify = ["pkeyutl", "-verify", "-pubin", "-inkey", "public.pem", "-rawin"];
    const files = ["-in", "statement", "-sigfile", "signature"];
    expect(openssl(...verify, ...files)).toMatch(/Verified Successfully/);
    writeFileSync(join(directory, "statement"), statement.replace('"seq":1', '"seq":2'));
    expect(() => openssl(...verify, ...files)).toThrow();
  });
});
