/**
 * Runs every `check:*` script of package.json, one line a step, and shows the output of those that fail.
 *
 * All steps run even after a failure, so that one run tells everything there is to mend.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const { scripts } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
const steps = Object.keys(scripts).filter((name) => name.startsWith("check:"));

for (const step of steps) {
  const begun = performance.now();
  const run = spawnSync("npm", ["run", "--silent", step], {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 1 << 28,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const seconds = ((performance.now() - begun) / 1000).toFixed(1);
  const ok = run.status === 0;
  console.log(`${ok ? "ok    " : "FAILED"}  ${step.padEnd(14)} ${seconds.padStart(5)} s`);
  if (ok) continue;
  process.exitCode = 1;
  console.log(`${run.stdout ?? ""}${run.stderr ?? ""}${run.error?.message ?? ""}`.trimEnd());
}
