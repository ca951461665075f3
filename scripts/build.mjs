/**
 * Compiles `src` into a fresh `dist` with plain tsc.
 *
 * The command line is then bundled into a few files (`dist/bin/`), because loading its modules one
 * by one would take most of the time of a short command; packages stay outside the bundle.
 *
 * The output is made beside `dist` and swapped in only when it compiled, so that a process
 * which runs the old build meanwhile never meets half of a new one, and so that nothing of
 * an older build survives.
 *
 * `--prepare`: does nothing where the compiler is not installed (`npm ci --omit=dev`).
 */
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const dist = join(root, "dist");

function findCompiler() {
  try {
    return fileURLToPath(import.meta.resolve("typescript/bin/tsc"));
  } catch {
    return undefined;
  }
}

/** Modules that must stay where they are: they find files by their own place. */
const UNBUNDLED = /\/storage\/(?:sqlite\/migrate|postgres\/files)\.js$/;

/** What all commands have in common, one way or another. */
const SHARED =
  /\/(?:core|objects|refs)\/|\/storage\/(?:port|decorators\/|rows\/)|\/store\/(?:views|branch|watch|workflow|repository|write-commit)\.js$|\/store\.js$|\/cli\/(?:session|output|exit-codes)\.js$/;

async function bundle(fresh) {
  const { rolldown } = await import("rolldown");
  const build = await rolldown({
    input: { agstate: join(fresh, "cli", "main.js") },
    platform: "node",
    external: (id) => UNBUNDLED.test(id) || !/^[./]/.test(id),
  });
  await build.write({
    dir: join(fresh, "bin"),
    format: "esm",
    chunkFileNames: "[name]-[hash].js",
    // One file of what every command needs: each file costs the start some time.
    codeSplitting: { groups: [{ name: "base", test: SHARED }] },
  });
  await build.close();
  rmSync(join(fresh, "cli"), { recursive: true });
}

async function compile(tsc) {
  const scratch = mkdtempSync(`${dist}.`);
  try {
    const fresh = join(scratch, "new");
    const args = [tsc, "-p", join(root, "tsconfig.json"), "--outDir", fresh];
    const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: "inherit" });
    if (status !== 0) return status ?? 1;
    await bundle(fresh);
    chmodSync(join(fresh, "bin", "agstate.js"), 0o755);
    if (existsSync(dist)) renameSync(dist, join(scratch, "old"));
    renameSync(fresh, dist);
    return 0;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

const tsc = findCompiler();
if (tsc !== undefined) process.exitCode = await compile(tsc);
else if (process.argv.includes("--prepare"))
  console.error("agstate: typescript is not installed, dist is left as it is");
else throw new Error("typescript is not installed: run `npm ci` first");
