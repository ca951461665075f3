import assert from "node:assert/strict";
import type { Storage } from "../../storage/port.js";
import type { ConformanceCase } from "../case.js";
import {
  ABSENT,
  at,
  begin,
  blob,
  chain,
  commit,
  move,
  mustHold,
  mustMove,
  refRow,
  send,
  sendOne,
} from "../fixtures.js";

const REF = "refs/heads/canonical";

/** Every method but `close`, called as a user would. */
const CALLS: Readonly<Record<string, (storage: Storage) => Promise<unknown>>> = {
  write: (s) => send(s, [move(REF, ABSENT, [commit()])]),
  readObjects: (s) => s.readObjects("w", []),
  readCommits: (s) => s.readCommits("w", []),
  readRefs: (s) => s.readRefs("w", { prefix: "" }),
  readReflog: (s) => s.readReflog("w", REF, { limit: 1 }),
  readGraph: (s) => s.readGraph("w", [], 1),
  findIds: (s) => s.findIds("w", "", 1),
  findExternal: (s) => s.findExternal("w", "x"),
  readPending: (s) => s.readPending("w", [""]),
  readWorkflows: (s) => s.readWorkflows({ limit: 1 }),
  readWorkflow: (s) => s.readWorkflow("w"),
  scanObjects: (s) => s.scanObjects("w", null, 1),
  scanCommits: (s) => s.scanCommits("w", null, 1),
  scanPending: (s) => s.scanPending("w", null, 1),
  watch: (s) => s.watch("w", () => undefined),
  checkStructure: (s) => s.checkStructure(),
  usage: (s) => s.usage("w"),
  compact: (s) => s.compact(),
  describe: (s) => s.describe(),
};

export const lifeCases: readonly ConformanceCase[] = [
  {
    name: "after close every call is refused, and closing again is fine",
    async run({ storage }) {
      await begin(storage, "w");
      await storage.close();
      await storage.close();
      for (const [name, call] of Object.entries(CALLS)) {
        await assert.rejects(call(storage), { code: "STORE_CLOSED" }, name);
      }
      await storage.close();
    },
  },
  {
    name: "calls under way when the store is closed finish",
    async run({ storage }) {
      await begin(storage, "w");
      const root = commit();
      const writing = sendOne(storage, move(REF, ABSENT, [root]));
      const reading = storage.usage("w");
      await storage.close();
      assert.equal((await writing).outcome, "moved");
      assert.ok((await reading).commits >= 0);
    },
  },
  {
    name: "the description is stable and says what the store is",
    async run({ storage, reopen }) {
      const first = await storage.describe();
      assert.ok(first.backend.length > 0);
      assert.ok(first.location.length > 0);
      assert.ok(Number.isSafeInteger(first.schemaVersion) && first.schemaVersion >= 1);
      assert.match(first.storeId, /^[0-9a-f]{32}$/);
      assert.ok(first.region === null || first.region.length > 0);
      assert.deepEqual(await storage.describe(), first);
      if (reopen === undefined) return;
      await storage.close();
      assert.deepEqual(await (await reopen()).describe(), first);
    },
  },
  {
    name: "a sound store has no structural problems",
    async run({ storage }) {
      await begin(storage, "w");
      const line = chain(4);
      const merge = commit({ parents: [line[3]!, line[1]!] });
      await mustMove(storage, move(REF, ABSENT, [...line, merge]), { objects: [blob("x")] });
      await mustMove(storage, move("refs/heads/x", ABSENT, [], { target: merge.id }));
      await mustMove(storage, move("refs/heads/x", at(merge), []));
      assert.deepEqual(await storage.checkStructure(), []);
    },
  },
  {
    name: "what was written is there after the store is opened again",
    async run({ storage, reopen }) {
      await begin(storage, "w");
      const line = chain(3);
      const object = blob("kept");
      const row = await mustMove(storage, move(REF, ABSENT, line, { maxStep: 3 }), {
        objects: [object],
      });
      const log = await storage.readReflog("w", REF, { limit: 5 });
      if (reopen === undefined) return;
      await storage.close();
      const again = await reopen();
      assert.deepEqual(await refRow(again, REF), row);
      assert.deepEqual(await again.readReflog("w", REF, { limit: 5 }), log);
      await mustHold(again, [object]);
      const next = commit({ parents: [line[2]!] });
      assert.equal((await mustMove(again, move(REF, at(line[2]!), [next]))).seq, 2);
    },
  },
];
