/**
 * Packs the package as npm would publish it and lints its exports and types, without a network.
 *
 * Expects a fresh `dist`. Also asserts that what the exports, the bin and the stores need at
 * run time is in the package.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const scratch = mkdtempSync(join(tmpdir(), "agstate-pack-"));

function run(tool, ...args) {
  const { status } = spawnSync(join(root, "node_modules", ".bin", tool), args, {
    cwd: root,
    stdio: "inherit",
  });
  if (status !== 0) process.exitCode = 1;
}

try {
  const answer = execFileSync(
    "npm",
    ["pack", "--json", "--ignore-scripts", "--offline", "--pack-destination", scratch],
    { cwd: root, encoding: "utf8" },
  );
  const [pack] = JSON.parse(answer);
  const paths = pack.files.map(({ path }) => path);
  const wanted = [
    ...Object.values(manifest.bin),
    ...Object.values(manifest.exports).flatMap((entry) =>
      typeof entry === "string" ? [entry] : Object.values(entry),
    ),
    ...["LICENSE", "README.md", "CHANGELOG.md"],
    ...["roles/roles.sql", "distributed/citus.sql"].map((name) => `migrations/postgres/${name}`),
  ].map((path) => path.replace(/^\.\//, ""));
  const missing = wanted.filter((path) => !paths.includes(path));
  if (!paths.some((path) => /^migrations\/sqlite\/.+\.sql$/.test(path)))
    missing.push("migrations/sqlite/*.sql");
  for (const path of missing) console.error(`not in the package: ${path}`);
  if (missing.length > 0) process.exitCode = 1;

  const tarball = join(scratch, pack.filename);
  run("publint", "run", tarball, "--strict");
  run("attw", tarball, "--profile", "esm-only", "--no-definitely-typed", "--no-emoji");
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
