/** Opens one store many times at once, and says which store each time met. */
import { openStore } from "../../../dist/index.js";
import { args, say, whenAllAreReady } from "./lines.mjs";

await whenAllAreReady();
const stores = await Promise.all(
  Array.from({ length: args.times }, () => openStore(`sqlite:${args.path}`)),
);
const ids = await Promise.all(stores.map(async (store) => (await store.describe()).storeId));
await Promise.all(
  stores.map((store, i) => store.createWorkflow(`${process.pid}-${i}`, { state: { i } })),
);
await Promise.all(stores.map((store) => store.close()));
say(JSON.stringify(ids));
