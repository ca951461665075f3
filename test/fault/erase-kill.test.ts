import { describe, expect, it } from "vitest";
import { sealPending } from "../../src/objects/pending.js";
import { startChild } from "../support/child-processes.js";
import { stored } from "../support/stored-text.js";
import { all, BACKENDS, makeStore } from "../support/stores.js";

const ERASE = new URL("./children/erase.mjs", import.meta.url);

const MARKER = "a marker that is nobody's";
const REQUEST = { paths: ["/step/input"], by: "dpo", reason: "request 17" };

/** More than the calls of an erasure. */
const CALLS_MAX = 20;

describe.each(BACKENDS.filter((backend) => backend !== "memory"))("erasing on %s", (backend) => {
  async function begin() {
    const { store, url, another } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", { state: { doc: [] } });
    const branch = await workflow.branch({ agent: "a", branch: "x" });
    // What tells of the copies goes first: it stands in commits' rows.
    for (let n = 0; n < 5; n++) {
      const record = { v: 1, name: "t", attempt: 1, startedAt: n, input: `${MARKER} ${n}` };
      const doc = ["copies: ", `<${MARKER} ${n}>`, "x".repeat(3000)];
      await branch.commit({ state: { doc, n }, step: { action: "read", record } });
    }
    const writes = [sealPending("langgraph/c/t", 0, { channel: "c", value: `${MARKER} 3` })];
    await workflow.internals.refs.apply({ updates: [], pending: writes });
    return { url, cold: async () => (await another()).workflow("w") };
  }

  it("ends when it is run again, wherever it was killed", async () => {
    let deaths = 0;
    for (let dieAt = 1; dieAt <= CALLS_MAX; dieAt++) {
      const { url, cold } = await begin();
      const child = startChild(ERASE, { url, request: REQUEST, dieAt, after: dieAt % 2 === 0 });
      const { signal } = await child.ended;
      const workflow = await cold();
      if (signal === null) {
        expect(child.lines.at(-1)).toMatch(/^erased done/);
        expect(await stored(workflow, MARKER)).toEqual([]);
        break;
      }
      deaths++;
      expect(signal).toBe("SIGKILL");
      expect((await workflow.fsck()).problems).toEqual([]);
      expect((await workflow.erase(REQUEST)).status).toBe("done");
      expect([dieAt, await stored(workflow, MARKER)]).toEqual([dieAt, []]);
      const report = await workflow.fsck();
      expect(report).toMatchObject({ problems: [], warnings: [] });
      // Whatever changed was asked for before.
      const erasures = (await all(workflow.audit())).filter(({ kind }) => kind === "erasure");
      expect(erasures[0]?.facts?.status).toBe("requested");
      expect(erasures.at(-1)?.facts?.status).toBe("done");
    }
    expect(deaths).toBeGreaterThan(4);
    expect(deaths).toBeLessThan(CALLS_MAX);
  });
});
