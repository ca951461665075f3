// Opens a store and writes to it, printing the code of the error. Arguments: path, create.
import { open } from "./store.mjs";

const [path, create] = process.argv.slice(2);
try {
  const storage = await open(path, create === "create");
  await storage.write({ workflow: "w", objects: [], moves: [], atomic: true });
  console.log("no error");
  await storage.close();
} catch (error) {
  console.log(error.code);
}
