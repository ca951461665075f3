/** Puts the writes of some tasks below one checkpoint of LangGraph, all at once, and others' at the same time. */
import { openStore } from "../../../dist/index.js";
import { AgstateSaver } from "../../../dist/langgraph/index.js";
import { args, say, whenAllAreReady } from "./lines.mjs";

const { url, config, writes } = args;
const store = await openStore(url, { create: false });
const saver = new AgstateSaver(store);
await whenAllAreReady();
await Promise.all(writes.map(([task, ...write]) => saver.putWrites(config, [write], task)));
say(JSON.stringify(writes.length));
await store.close();
