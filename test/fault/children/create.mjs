// Opens a store that may not be there yet and prints its id. Argument: path.
import { open } from "./store.mjs";

const storage = await open(process.argv[2], true);
console.log((await storage.describe()).storeId);
await storage.close();
