import { emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import { deltaChannelHistoryTests, validate } from "@langchain/langgraph-checkpoint-validation";
import { describe, expect, it } from "vitest";
import { openStore, type Store } from "../../src/index.js";
import { AgstateSaver } from "../../src/langgraph/index.js";
import { marker, testKeys } from "../support/keys.js";
import { agstateError, makeStore } from "../support/stores.js";

const DECLARATION = { classification: "sensitive", storageRegion: "eu" } as const;

/** LangGraph's own suite, on threads that are encrypted. */
const stores = new Map<AgstateSaver, Store>();
const initializer = {
  checkpointerName: "agstate, encrypted",
  async createCheckpointer() {
    const store = await openStore("memory:", { region: "eu", keys: testKeys() });
    const saver = new AgstateSaver(store, { declaration: DECLARATION });
    stores.set(saver, store);
    return saver;
  },
  async destroyCheckpointer(saver: AgstateSaver) {
    await stores.get(saver)?.close();
    stores.delete(saver);
  },
};
validate(initializer);
deltaChannelHistoryTests(initializer);

describe("an encrypted thread", () => {
  it("holds nothing in clear, and is not gone on with without its key", async () => {
    const keys = testKeys();
    const { store, another } = await makeStore("sqlite", { region: "eu", keys });
    const saver = new AgstateSaver(store, { declaration: DECLARATION });
    const mark = marker("thread");
    const at = { configurable: { thread_id: "t", checkpoint_ns: "" } };
    const checkpoint = { ...emptyCheckpoint(), id: uuid6(1), channel_values: { said: mark } };
    const metadata = { source: "loop", step: 0, parents: {}, note: mark } as const;
    const put = await saver.put(at, checkpoint, metadata, { said: 1 });
    await saver.putWrites(put, [["said", { more: mark }]], "task-1");
    expect(await saver.getTuple(put)).toMatchObject({
      checkpoint: { channel_values: { said: mark } },
      metadata: { note: mark },
      pendingWrites: [["task-1", "said", { more: mark }]],
    });

    const { storage } = (await store.workflow("t")).internals;
    const rows = await storage.readPending("t", ["langgraph"]);
    expect(rows.map(({ body }) => body[0])).toEqual([2]);
    expect(Buffer.from(rows[0]!.body).includes(mark)).toBe(false);

    const locked = new AgstateSaver(await another({ region: "eu", keys: undefined }));
    await expect(locked.getTuple(put)).rejects.toThrow(agstateError("KEY_UNAVAILABLE"));
    const bare = { configurable: { thread_id: "bare", checkpoint_ns: "" } };
    await saver.put(bare, { ...checkpoint, id: uuid6(3) }, metadata, { said: 1 });
    await expect(locked.getTuple(bare)).rejects.toThrow(agstateError("WITHHELD"));
    await expect(locked.putWrites(put, [["said", "x"]], "task-2")).rejects.toThrow(
      agstateError("KEY_UNAVAILABLE"),
    );
    const next = { ...checkpoint, id: uuid6(2) };
    await expect(locked.put(put, next, metadata, { said: 2 })).rejects.toThrow(
      agstateError("WITHHELD"),
    );
    expect(await storage.readPending("t", ["langgraph"])).toEqual(rows);

    const again = new AgstateSaver(await another({ region: "eu", keys }));
    expect((await again.getTuple(at))?.checkpoint.channel_values).toEqual({ said: mark });
    // A row that was put elsewhere does not open there.
    const [row] = rows;
    await storage.write({
      ...{ workflow: "t", objects: [], moves: [], atomic: true },
      dropPending: ["langgraph"],
      pending: [{ ...row!, index: 5 }],
    });
    await expect(again.getTuple(at)).rejects.toThrow(agstateError("CORRUPT_OBJECT"));
  });
});
