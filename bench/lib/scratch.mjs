import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const made = new Set();

/** A fresh directory for one measurement; it is gone when the process is. */
export function scratch() {
  const directory = mkdtempSync(join(tmpdir(), "agstate-bench-"));
  made.add(directory);
  return directory;
}

/** Removes a directory that `scratch` made, so that the next measurement finds the disk as this one did. */
export function discard(directory) {
  rmSync(directory, { recursive: true, force: true });
  made.delete(directory);
}

process.on("exit", () => {
  for (const directory of made) rmSync(directory, { recursive: true, force: true });
});
for (const [signal, code] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
]) {
  process.on(signal, () => process.exit(code));
}
