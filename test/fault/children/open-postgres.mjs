// Opens, and so makes, a store in a schema; says when it tries and when it is done.
import { openStore } from "../../../dist/index.js";

const { url, options } = JSON.parse(process.argv[2]);
console.log("opening");
const store = await openStore(url, options ?? {});
console.log(`open ${(await store.describe()).storeId}`);
await store.close();
