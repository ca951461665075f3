// Leaves word in the folder that the steps share, and waits until it is told to end.
import { readdirSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";

process.on("SIGTERM", () => {
  writeSync(1, `told to end, beside ${readdirSync(process.env.WORK).join(" ")}\n`);
  process.exit(7);
});
writeFileSync(join(process.env.WORK, process.env.WORD), "");
setInterval(() => {}, 1000);
writeSync(1, "ready\n");
