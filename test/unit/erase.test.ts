import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { JsonValue } from "../../src/index.js";
import { sealPending } from "../../src/objects/pending.js";
import { stored } from "../support/stored-text.js";
import { agstateError, all, BACKENDS, makeStore } from "../support/stores.js";

const EMAIL = "alice.marker@example.org";
const BY = { by: "dpo", reason: "request 17" };

describe.each(BACKENDS)("erasing on %s", (backend) => {
  async function begin(state: JsonValue = {}, isolation: string[] = [], subjects: string[] = []) {
    const { store, another } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", { state, isolation, subjects });
    const cold = async () => (await another()).workflow("w");
    return { store, workflow, cold };
  }

  it("takes the value at a path out of all of history, and lets branches go on without it", async () => {
    const { workflow, cold } = await begin({ user: { email: EMAIL, plan: "pro" }, n: 0 }, [
      "/state/user/email",
    ]);
    const branch = await workflow.branch({ agent: "a", branch: "x" });
    for (let n = 1; n < 5; n++) {
      await branch.commit({ state: { user: { email: EMAIL, plan: "pro" }, n } });
    }
    const before = branch.head;
    const report = await workflow.erase({ paths: ["/state/user/email"], ...BY });
    expect(report).toMatchObject({
      kind: "paths",
      status: "done",
      objects: 1,
      inline: 0,
      held: [],
      residue: [],
      shared: [],
    });
    expect(report.heads.map(({ ref }) => ref)).toEqual(["agents/a/x", "canonical"]);
    const reader = await cold();
    expect(await reader.stateAt("canonical")).toEqual({ user: { plan: "pro" }, n: 0 });
    expect(await reader.stateAt("a/x")).toEqual({ user: { plan: "pro" }, n: 4 });
    expect(await reader.stateAt(`${before.id}`, "/n")).toBe(4);
    expect(JSON.parse(JSON.stringify(await reader.stateAt(before.id)))).toEqual({
      user: {
        email: { $agstate: "withheld", reason: "erased", object: expect.any(String) },
        plan: "pro",
      },
      n: 4,
    });
    expect(await stored(reader, EMAIL)).toEqual([]);
    expect(await reader.fsck()).toMatchObject({ problems: [], erased: 1 });
    expect((await all(reader.log({ revisions: ["a/x"] }))).length).toBe(6);
    const again = await workflow.erase({ paths: ["/state/user/email"], ...BY });
    expect(again).toMatchObject({ status: "done", objects: 0, heads: [] });
  });

  it("finds copies in strings, keys, lists, long texts, step records and pending rows", async () => {
    const { workflow, cold } = await begin({ user: { email: EMAIL } });
    const branch = await workflow.branch({ agent: "a", branch: "x" });
    const long = Array.from({ length: 400 }, (_, i) => `line ${i} of a long text\n`).join("");
    const spanning = `${long}${EMAIL}${long}`;
    await branch.commit({
      state: {
        user: { email: EMAIL },
        messages: ["hello", `mail to ${EMAIL} now`],
        seen: { [EMAIL]: 1, other: 2 },
        text: spanning,
      },
      step: {
        action: "write",
        record: { v: 1, name: "send", input: { to: EMAIL }, attempt: 1, startedAt: 1 },
      },
    });
    await workflow.internals.refs.apply({
      updates: [],
      pending: [
        sealPending("langgraph/c1/t1", 0, { channel: "messages", value: [`re: ${EMAIL}`] }),
        sealPending("langgraph/c1/t1", 1, { channel: "messages", value: ["nothing"] }),
      ],
    });
    const dry = await workflow.erase({ paths: ["/state/user/email"], ...BY, dryRun: true });
    expect(dry).toMatchObject({ dryRun: true, heads: [], pending: 1 });
    const report = await workflow.erase({ paths: ["/state/user/email"], ...BY });
    expect(report).toMatchObject({ status: "done", pending: 1, inline: 1 });
    expect(report.objects).toBe(dry.objects);
    expect(report.bytes).toBeGreaterThanOrEqual(dry.bytes);
    const reader = await cold();
    expect(await stored(reader, EMAIL)).toEqual([]);
    expect(await reader.stateAt("a/x")).toEqual({
      user: {},
      messages: ["hello", "[erased]"],
      seen: { other: 2 },
      text: "[erased]",
    });
    expect((await reader.fsck()).problems).toEqual([]);
    expect(await workflow.internals.storage.readPending("w", ["langgraph"])).toHaveLength(1);
  });

  it("finds copies that go over from one piece of a long text to the next", async () => {
    // A letter that is longer than the pieces of the page that it was pasted into.
    const letter = Array.from({ length: 300 }, (_, i) => `line ${i} of marker\n`).join("");
    const { workflow } = await begin({ letter });
    const branch = await workflow.branch({ agent: "a", branch: "x" });
    const filler = "filler\n".repeat(500);
    await branch.commit({ state: { letter, page: `${filler}> ${letter}${filler}` } });
    const report = await workflow.erase({ paths: ["/state/letter"], ...BY });
    expect(report.status).toBe("done");
    expect(await stored(workflow, "of marker")).toEqual([]);
  });

  it("leaves what a hold reaches until it is released, and then knows what was left", async () => {
    const { workflow, cold } = await begin({ user: { email: EMAIL }, log: [] }, [
      "/state/user/email",
      "/state/log",
    ]);
    const branch = await workflow.branch({ agent: "a", branch: "x" });
    // The copy is held, and what tells of it is not.
    await branch.commit({ state: { user: {}, log: [`to ${EMAIL}`] } });
    await workflow.reset("canonical", "a/x");
    const side = await workflow.branch({ agent: "a", branch: "side" });
    await side.commit({ state: { user: {}, log: [] } });
    const lone = await workflow.commitAt("a/x");
    await workflow.hold(lone.id, { name: "court", reason: "file 7" });
    const paths = ["/state/user/email", "/state/log"];
    const first = await workflow.erase({ paths, ...BY });
    expect(first.status).toBe("partial");
    expect(first.held).toEqual([{ hold: "court", objects: expect.any(Number) }]);
    expect(await workflow.stateAt("holds/court", "/log")).toEqual([`to ${EMAIL}`]);
    expect(await workflow.stateAt("a/x")).toEqual({ user: {} });
    await workflow.releaseHold("court", { reason: "settled" });
    const second = await workflow.erase({ paths, ...BY });
    expect(second).toMatchObject({ status: "done", held: [] });
    expect(await stored(await cold(), EMAIL)).toEqual([]);
  });

  it("finds what is a subject's: values at the declared paths, steps that bear the subject, and its name", async () => {
    const { workflow, cold } = await begin({ users: {}, log: [] }, [], ["/state/users/{subject}"]);
    const branch = await workflow.branch({ agent: "a", branch: "x" });
    const record = { v: 1, name: "look-up", attempt: 1, startedAt: 1 };
    await branch.commit({
      state: {
        users: {
          "customer-42": { name: "Marker Alice", age: 41 },
          "customer-43": { name: "Bob of the others", age: 41 },
        },
        log: ["asked by Marker Alice", "customer-42 was served", "nothing else"],
      },
      step: { action: "read", record: { ...record, output: "short" } },
      subjects: ["customer-42", "customer-44"],
    });
    const { id } = await branch.commit({
      state: await branch.state(),
      step: { action: "read", record: { ...record, output: "another" } },
      subjects: ["customer-43"],
      allowEmpty: true,
    });
    // The record does not say who it is.
    expect(await stored(workflow, "customer-44")).toEqual([]);
    const report = await workflow.erase({ subject: "customer-42", ...BY });
    expect(report).toMatchObject({ kind: "subject", status: "done", residue: [] });
    const reader = await cold();
    for (const text of ["customer-42", "Marker Alice"]) {
      expect(await stored(reader, text)).toEqual([]);
    }
    expect(await reader.stateAt("a/x")).toEqual({
      users: { "customer-43": { name: "Bob of the others", age: 41 } },
      log: ["[erased]", "[erased]", "nothing else"],
    });
    expect(JSON.stringify(await reader.stepRecord(`${id}~1`))).toMatch(/withheld/);
    expect(await reader.stepRecord(id)).toMatchObject({ output: "another" });
    expect((await reader.fsck()).problems).toEqual([]);
  });

  it("leaves short values where a branch has them elsewhere, and says so", async () => {
    const { workflow, cold } = await begin({ user: { pin: "no-47" }, code: { pin: "no-47" } }, [
      "/state/user/pin",
      "/state/code/pin",
    ]);
    const report = await workflow.erase({ paths: ["/state/user/pin"], ...BY });
    expect(report).toMatchObject({ status: "done", objects: 0 });
    expect(report.shared).toHaveLength(1);
    const reader = await cold();
    expect(await reader.stateAt("canonical")).toEqual({ user: {}, code: { pin: "no-47" } });
    const other = await reader.erase({ paths: ["/state/code/pin"], ...BY });
    expect(other).toMatchObject({ status: "done", objects: 1, shared: [] });
    expect(await stored(reader, "no-47")).toEqual([]);
  });

  it("takes elements out of lists, whole values and members of small ones", async () => {
    const items = Array.from({ length: 300 }, (_, i) => ({
      id: i,
      email: `user-${i}@marker.example`,
    }));
    const { workflow, cold } = await begin({ items, gone: { a: 1 }, n: 1 });
    await workflow.erase({
      paths: ["/state/items/*/email", "/state/items/7", "/state/gone"],
      ...BY,
    });
    const reader = await cold();
    const left = items.flatMap(({ id }) => (id === 7 ? [] : [{ id }]));
    expect(await reader.stateAt("canonical")).toEqual({ items: left, n: 1 });
    expect(await stored(reader, "@marker.example")).toEqual([]);
    expect((await reader.fsck()).problems).toEqual([]);
  });

  it("says what it cannot change, and what it left because keys are kept", async () => {
    const { workflow } = await begin({ user: { email: EMAIL } }, ["/state/user/email"]);
    const branch = await workflow.branch({ agent: EMAIL.split("@")[0] as string, branch: EMAIL });
    const { id } = await branch.commit({
      state: { user: { email: EMAIL }, seen: { [EMAIL]: { deep: "x".repeat(3000) } } },
      message: `wrote to ${EMAIL}`,
      externalId: EMAIL,
      reason: `for ${EMAIL}`,
    });
    const dry = await workflow.erase({
      paths: ["/state/user/email"],
      ...BY,
      dryRun: true,
      keepKeys: true,
    });
    const report = await workflow.erase({ paths: ["/state/user/email"], ...BY, keepKeys: true });
    expect(report.status).toBe("partial");
    const kinds = new Map(report.residue.map(({ kind, at }) => [kind, at]));
    expect(kinds.get("message")).toBe(id);
    expect(kinds.get("external-id")).toBe(id);
    expect(kinds.get("log")).toMatch(/@\{2\}$/);
    expect(kinds.get("ref-name")).toMatch(/^refs\/heads\/agents/);
    expect(kinds.get("key")).toMatch(/^[0-9a-f]{64}$/);
    for (const { remedy } of report.residue) expect(remedy).not.toBe("");
    expect(dry.residue.length).toBe(report.residue.length);
    const again = await workflow.erase({ paths: ["/state/user/email"], ...BY });
    // Nothing is known of what stood there any more; the objects that were left are.
    expect(again.objects).toBe(1);
  });

  it("refuses a request that tells what is erased, is not one, or has no reason", async () => {
    const { workflow } = await begin({ user: { email: EMAIL } });
    const before = await all(workflow.audit());
    const paths = ["/state/user/email"];
    await expect(workflow.erase({ paths, by: "dpo", reason: "" })).rejects.toEqual(
      agstateError("INVALID_VALUE", { field: "reason" }),
    );
    await expect(workflow.erase({ paths, by: "dpo", reason: `of ${EMAIL}` })).rejects.toEqual(
      agstateError("INVALID_VALUE", { field: "reason" }),
    );
    await expect(workflow.erase({ subject: EMAIL, by: EMAIL, reason: "r" })).rejects.toEqual(
      agstateError("INVALID_VALUE", { field: "by" }),
    );
    for (const target of [{}, { paths: [] }, { paths, subject: "s" }, { workflow: false }]) {
      await expect(workflow.erase({ ...target, ...BY } as never)).rejects.toEqual(
        agstateError("INVALID_ARGUMENT"),
      );
    }
    for (const path of ["/user/email", "state", ""]) {
      await expect(workflow.erase({ paths: [path], ...BY })).rejects.toEqual(
        agstateError("INVALID_PATH"),
      );
    }
    await expect(workflow.erase({ subject: "", ...BY })).rejects.toEqual(
      agstateError("INVALID_ARGUMENT"),
    );
    expect(await all(workflow.audit())).toEqual(before);
  });

  it("erases a whole workflow, which still verifies", async () => {
    const { workflow, cold } = await begin({ secret: EMAIL });
    const branch = await workflow.branch({ agent: "a", branch: "x" });
    await branch.commit({
      state: { secret: EMAIL, text: "x".repeat(5000) },
      step: {
        action: "execute",
        record: { v: 1, name: "t", input: EMAIL, attempt: 1, startedAt: 1 },
      },
    });
    await workflow.hold("a/x", { name: "court", reason: "file 7" });
    await workflow.internals.refs.apply({
      updates: [],
      pending: [sealPending("langgraph/c1/t1", 0, { channel: "c", value: EMAIL })],
    });
    await expect(workflow.erase({ workflow: true, ...BY })).rejects.toEqual(
      agstateError("HELD", { holds: ["court"] }),
    );
    expect(await workflow.stateAt("canonical")).toEqual({ secret: EMAIL });
    await workflow.releaseHold("court", { reason: "settled" });
    const report = await workflow.erase({ workflow: true, ...BY });
    expect(report).toMatchObject({ kind: "workflow", status: "done", pending: 1 });
    expect(report.heads).toHaveLength(2);
    const reader = await cold();
    expect(reader.info.completedAt).not.toBeNull();
    expect(await stored(reader, EMAIL)).toEqual([]);
    expect(await reader.stateAt("a/x")).toEqual({});
    expect((await reader.fsck()).problems).toEqual([]);
    expect((await reader.verifyAudit()).problems).toEqual([]);
    expect((await all(reader.log())).length).toBeGreaterThan(4);
    const again = await reader.erase({ workflow: true, ...BY });
    expect(again).toMatchObject({ status: "done", objects: 0, inline: 0, heads: [] });
  });

  it("erases in a completed workflow, whose branches take no new heads", async () => {
    const { workflow, cold } = await begin({ user: { email: EMAIL, pin: 4711 }, pin: 4711 }, [
      "/state/user/*",
      "/state/pin",
    ]);
    await workflow.complete();
    const report = await workflow.erase({ paths: ["/state/user/*"], ...BY });
    expect(report).toMatchObject({ status: "done", heads: [], objects: 1 });
    expect(report.shared).toHaveLength(1);
    const reader = await cold();
    expect(await stored(reader, EMAIL)).toEqual([]);
    expect(await reader.stateAt("canonical", "/pin")).toBe(4711);
    expect((await reader.fsck()).problems).toEqual([]);
  });

  it("records the request before anything changes, and what came of it", async () => {
    const { workflow } = await begin({ user: { email: EMAIL } });
    const { storage } = workflow.internals;
    const redact = storage.redact.bind(storage);
    const seen: string[] = [];
    storage.redact = async () => {
      for await (const event of workflow.audit())
        if (event.kind === "erasure") seen.push(String(event.facts?.status));
      throw new Error("cut off");
    };
    const paths = ["/state/user/email"];
    await expect(workflow.erase({ paths, ...BY })).rejects.toThrow("cut off");
    expect(seen).toEqual(["requested"]);
    storage.redact = redact;
    expect(await stored(workflow, EMAIL)).not.toEqual([]);
    const report = await workflow.erase({ paths, ...BY });
    expect(report).toMatchObject({ status: "done", heads: [] });
    expect(await stored(workflow, EMAIL)).toEqual([]);
    const erasures = (await all(workflow.audit())).filter(({ kind }) => kind === "erasure");
    expect(erasures.map(({ facts }) => facts?.status)).toEqual([
      "requested",
      "failed",
      "requested",
      "done",
    ]);
    expect(erasures.at(-1)?.facts).toMatchObject({
      request: report.id,
      of: "paths",
      by: "dpo",
      reason: "request 17",
      objects: report.objects,
    });
    expect(JSON.stringify(erasures)).not.toContain("user/email");
  });

  it("leaves log, diff, merge, blame and cherry-pick working over what is gone", async () => {
    const { workflow, cold } = await begin({ user: { email: EMAIL }, list: ["a"], n: 0 });
    const one = await workflow.branch({ agent: "a", branch: "one" });
    const two = await workflow.branch({ agent: "a", branch: "two" });
    await one.commit({ state: { user: { email: EMAIL }, list: ["a", "b"], n: 0 } });
    const { id: picked } = await two.commit({
      state: { user: { email: EMAIL }, list: ["a"], n: 5 },
    });
    await workflow.erase({ paths: ["/state/user/email"], ...BY });
    const reader = await cold();
    expect((await all(reader.log())).length).toBeGreaterThan(6);
    const changes = await reader.diff("a/one~1", "a/two~1");
    expect(JSON.stringify(changes)).not.toContain(EMAIL);
    const merged = await reader.merge(["a/one", "a/two"]);
    expect(merged.status).toMatch(/merged|conflict/);
    expect(await reader.stateAt("a/one", "/list")).toEqual(["a", "b"]);
    expect((await reader.blame("a/one", "/list")).length).toBeGreaterThan(0);
    expect(picked).toMatch(/^[0-9a-f]{64}$/);
    expect((await reader.fsck()).problems).toEqual([]);
  });

  it("goes on beside writers that move branches all the time", async () => {
    const { workflow, cold } = await begin({ user: { email: EMAIL }, n: 0 }, ["/state/user/email"]);
    const branch = await workflow.branch({ agent: "a", branch: "x" });
    let stop = false;
    const writing = (async () => {
      for (let n = 1; !stop && n < 500; n++) {
        // Where no call waits for anything, nobody else would have a turn.
        await sleep(Math.random() * 50);
        try {
          await branch.update([{ op: "set", path: "/n", value: n }]);
        } catch (error) {
          expect(error).toEqual(agstateError("REF_CONFLICT"));
          await branch.refresh();
        }
      }
    })();
    const report = await workflow.erase({ paths: ["/state/user/email"], ...BY }).finally(() => {
      stop = true;
      return writing;
    });
    const last =
      report.status === "done"
        ? report
        : await workflow.erase({ paths: ["/state/user/email"], ...BY });
    expect(last.status).toBe("done");
    const reader = await cold();
    expect(await stored(reader, EMAIL)).toEqual([]);
    expect(await reader.stateAt("a/x", "/user")).toEqual({});
    expect((await reader.fsck()).problems).toEqual([]);
  });
});
