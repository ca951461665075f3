import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import type { FsckReport, Store, Workflow } from "../../src/index.js";
import { agstateError, makeStore } from "../support/stores.js";

const BLOB = 3;
const TREE = 2;

/** A state with blobs, a list, a text, and an object's tree. */
const STATE = {
  first: "first ".repeat(300),
  second: "second ".repeat(250),
  list: Array.from({ length: 200 }, (_, i) => ({ message: `${i} ${"x".repeat(40)}` })),
  text: Array.from({ length: 300 }, (_, i) => `line ${i}\n`).join(""),
};

/** Where a commit's state has an object of a kind; the hex of its id. */
interface Place {
  readonly id: string;
  readonly pointer: string;
}

/** A closed store with one workflow, and ways to change its file behind its back and open it anew. */
async function begin() {
  const { store, directory, another } = await makeStore("sqlite");
  const workflow = await store.createWorkflow("w", { state: STATE });
  const { head } = await workflow.canonical();
  const state = (await workflow.internals.commitAt("canonical")).root.state!;
  const entries = await workflow.internals.objects.tree(state.id);
  const place = (key: string): Place => ({
    id: entries.find((entry) => entry.name === key)!.id,
    pointer: `/${key}`,
  });
  const places = {
    blob: place("first"),
    "another blob": place("second"),
    "the tree of a list": place("list"),
    "the tree of a text": place("text"),
    "the state's own tree": { id: state.id, pointer: "" },
  };
  await store.close();
  const sql = (statement: string, ...values: unknown[]) => {
    const db = new Database(join(directory, "store.db"));
    try {
      expect(db.prepare(statement).run(...values).changes).toBeGreaterThan(0);
    } finally {
      db.close();
    }
  };
  const reopen = async (): Promise<{ store: Store; workflow: Workflow }> => {
    const opened = await another();
    return { store: opened, workflow: await opened.workflow("w") };
  };
  return { places, head, sql, reopen };
}

const FLIP = "substr(body, 1, 9) || char(unicode(substr(body, 10, 1)) + 1) || substr(body, 11)";

/** Damages to the row of an object. */
const DAMAGES: Record<string, string> = {
  "a byte flipped": `UPDATE objects SET body = CAST(${FLIP} AS BLOB) WHERE hex(id) = upper(?)`,
  "cut short":
    "UPDATE objects SET body = substr(body, 1, length(body) - 1) WHERE hex(id) = upper(?)",
  emptied: "UPDATE objects SET body = x'' WHERE hex(id) = upper(?)",
  "of another type": `UPDATE objects SET type = ${BLOB + TREE} - type WHERE hex(id) = upper(?)`,
};

function named(report: FsckReport): string[] {
  return report.problems.map(({ kind, subject }) => `${kind} ${subject}`).sort();
}

const PLACES = [
  "blob",
  "another blob",
  "the tree of a list",
  "the tree of a text",
  "the state's own tree",
] as const;

describe("an object that went bad (OBJ-01)", () => {
  it.each(
    PLACES.flatMap((place) => Object.keys(DAMAGES).map((damage) => [place, damage] as const)),
  )("is never served, and fsck names it: %s, %s", async (at, damage) => {
    const { places, sql, reopen } = await begin();
    const { id, pointer } = places[at];
    sql(DAMAGES[damage]!, id);
    const { workflow } = await reopen();
    const corrupt = agstateError("CORRUPT_OBJECT", {
      expected: id,
      actual: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    const branch = await workflow.canonical();
    await expect(branch.state(pointer)).rejects.toThrow(corrupt);
    await expect(workflow.stateAt("canonical")).rejects.toThrow(corrupt);
    expect(named(await workflow.fsck())).toEqual([`corrupt-object ${id}`]);
  });

  it("is never served when two rows swapped their bytes; fsck names both", async () => {
    const { places, sql, reopen } = await begin();
    const [a, b] = [places.blob, places["another blob"]];
    const put = "UPDATE objects SET body = ? WHERE hex(id) = upper(?)";
    sql(put, Buffer.from(JSON.stringify(STATE.second)), a.id);
    sql(put, Buffer.from(JSON.stringify(STATE.first)), b.id);
    const { workflow } = await reopen();
    await expect(workflow.stateAt("canonical", a.pointer)).rejects.toThrow(
      agstateError("CORRUPT_OBJECT", { expected: a.id, actual: b.id }),
    );
    await expect(workflow.stateAt("canonical", b.pointer)).rejects.toThrow(
      agstateError("CORRUPT_OBJECT", { expected: b.id, actual: a.id }),
    );
    expect(named(await workflow.fsck())).toEqual(
      [`corrupt-object ${a.id}`, `corrupt-object ${b.id}`].sort(),
    );
  });

  it("does not hide the others: fsck names all that are bad or gone", async () => {
    const { places, sql, reopen } = await begin();
    sql(DAMAGES["cut short"]!, places.blob.id);
    sql(DAMAGES["a byte flipped"]!, places["the tree of a list"].id);
    sql("DELETE FROM objects WHERE hex(id) = upper(?)", places["another blob"].id);
    const { workflow } = await reopen();
    expect(named(await workflow.fsck())).toEqual(
      [
        `corrupt-object ${places.blob.id}`,
        `corrupt-object ${places["the tree of a list"].id}`,
        `missing-object ${places["another blob"].id}`,
      ].sort(),
    );
    await expect(workflow.stateAt("canonical", "/second")).rejects.toThrow(
      agstateError("MISSING_OBJECT", { id: places["another blob"].id }),
    );
    // What is whole can be read, and written on.
    const branch = await workflow.canonical();
    expect(await branch.state("/text")).toBe(STATE.text);
    await branch.update([{ op: "text-append", path: "/text", text: "more\n" }]);
  });
});

describe("writing over an object that went bad (OBJ-01)", () => {
  const writes: Record<string, (workflow: Workflow, pointer: string) => Promise<unknown>> = {
    "the same state": async (workflow) => (await workflow.canonical()).commit({ state: STATE }),
    "the same state, with a message": async (workflow) =>
      (await workflow.canonical()).commit({ state: STATE, message: "again" }),
    "the same state twice, then with a message": async (workflow) => {
      const branch = await workflow.canonical();
      await branch.commit({ state: STATE });
      await branch.commit({ state: STATE, message: "again" });
    },
    "the same value by path": async (workflow, pointer) => {
      const value = pointer === "" ? STATE : STATE[pointer.slice(1) as keyof typeof STATE];
      await (await workflow.canonical()).update([{ op: "set", path: pointer, value }]);
    },
    "the same state, on another branch": async (workflow) => {
      const branch = await workflow.branch({ agent: "a", branch: "b", from: "canonical" });
      await branch.commit({ state: STATE, allowEmpty: true });
    },
  };

  it.each(
    Object.keys(writes).flatMap((write) =>
      (["blob", "the tree of a list"] as const).flatMap((place) =>
        ["a byte flipped", "gone"].map((damage) => [write, place, damage] as const),
      ),
    ),
  )("stores a good copy, or says that it did not: %s, %s, %s", async (write, at, damage) => {
    const { places, sql, reopen } = await begin();
    const { id, pointer } = places[at];
    sql(DAMAGES[damage] ?? "DELETE FROM objects WHERE hex(id) = upper(?)", id);
    const { workflow, store } = await reopen();
    const outcome = await writes[write]!(workflow, pointer).then(
      () => "written",
      (error: { code: string }) => error.code,
    );
    await store.close();
    const again = (await reopen()).workflow;
    if (outcome !== "written") {
      // An edit by path looks at what it replaces. A whole state needs nothing of the old one.
      expect(write).toBe("the same value by path");
      expect(outcome).toMatch(/^(CORRUPT|MISSING)_OBJECT$/);
      return;
    }
    expect((await again.fsck()).problems).toEqual([]);
    expect(await again.stateAt("canonical")).toEqual(STATE);
  });
});

describe("a commit that went bad (OBJ-01)", () => {
  const inlineDamage =
    "UPDATE objects SET inline = CAST(substr(inline, 1, length(inline) - 1) || x'00' AS BLOB) WHERE hex(id) = upper(?)";
  const damages: Record<string, [sql: string, problem: RegExp]> = {
    "its body": [
      `UPDATE objects SET body = CAST(${FLIP} AS BLOB) WHERE hex(id) = upper(?)`,
      /^corrupt-commit ID$/,
    ],
    "its body, cut short": [
      "UPDATE objects SET body = substr(body, 1, length(body) - 1) WHERE hex(id) = upper(?)",
      /^corrupt-commit ID$/,
    ],
    "its root tree": [inlineDamage, /^corrupt-object [0-9a-f]{64} \(in commit ID\)$/],
    "its root tree, cut short": [
      "UPDATE objects SET inline = substr(inline, 1, length(inline) - 3) WHERE hex(id) = upper(?)",
      /ID/,
    ],
    "its root tree, gone": [
      "UPDATE objects SET inline = NULL WHERE hex(id) = upper(?)",
      /^missing-object [0-9a-f]{64}$/,
    ],
  };

  it.each(Object.keys(damages))("is never served, and fsck names it: %s", async (damage) => {
    const { head, sql, reopen } = await begin();
    const [statement, problem] = damages[damage]!;
    sql(statement, head.id);
    const { workflow } = await reopen();
    await expect(workflow.canonical()).rejects.toThrow(agstateError("CORRUPT_OBJECT"));
    await expect(workflow.commitAt("canonical")).rejects.toThrow(agstateError("CORRUPT_OBJECT"));
    const found = named(await workflow.fsck()).map((line) => line.replace(head.id, "ID"));
    expect(found.length).toBeGreaterThan(0);
    for (const line of found) expect(line).toMatch(problem);
    // The workflow's own commit is as it was.
    expect(await workflow.stateAt("refs/audit/workflow", "/workflow")).toBe("w");
  });

  it.each([
    ["other parents", "parents = zeroblob(32)", ["bad-graph", "missing-commit"]],
    ["another date", "time = time + 1", ["bad-graph"]],
    ["another generation", "generation = 7", ["bad-graph"]],
    ["an external id", "external_id = 'x'", ["bad-graph"]],
  ] as const)("is told apart from its row: %s", async (_, set, kinds) => {
    const { head, sql, reopen } = await begin();
    sql(`UPDATE objects SET ${set} WHERE hex(id) = upper(?)`, head.id);
    const { workflow } = await reopen();
    const report = await workflow.fsck();
    expect(report.problems.map((p) => p.kind).sort()).toEqual(kinds);
  });
});

describe("a ref or a log that went bad (OBJ-01)", () => {
  const damages: Record<string, [sql: string, kinds: string[]]> = {
    "a ref that points nowhere": [
      "UPDATE refs SET id = zeroblob(32) WHERE name = 'refs/tags/t'",
      ["bad-ref", "bad-reflog"],
    ],
    "a ref moved without a log entry": [
      `UPDATE refs SET id = (SELECT id FROM refs WHERE name = 'refs/audit/workflow')
       WHERE name = 'refs/tags/t'`,
      ["bad-reflog"],
    ],
    "a reason rewritten": ["UPDATE reflog SET reason = 'x' WHERE reason = 'one'", ["bad-reflog"]],
    "an actor rewritten": ["UPDATE reflog SET actor = 'x' WHERE reason = 'one'", ["bad-reflog"]],
    "a log's last entry lost": ["DELETE FROM reflog WHERE reason = 'three'", ["bad-reflog"]],
    "a log's first entry lost": ["DELETE FROM reflog WHERE reason = 'one'", ["bad-reflog"]],
  };

  it.each(Object.keys(damages))("is named by fsck: %s", async (damage) => {
    const { sql, reopen } = await begin();
    const before = await reopen();
    await before.workflow.tag("t", "canonical", { reason: "one" });
    await before.workflow.deleteTag("t", { reason: "two" });
    await before.workflow.tag("t", "canonical", { reason: "three" });
    expect((await before.workflow.fsck()).problems).toEqual([]);
    await before.store.close();
    const [statement, kinds] = damages[damage]!;
    sql(statement);
    const { problems } = await (await reopen()).workflow.fsck();
    expect([...new Set(problems.map((p) => p.kind))].sort()).toEqual(kinds);
    expect(new Set(problems.map((p) => p.subject))).toEqual(new Set(["refs/tags/t"]));
  });
});
