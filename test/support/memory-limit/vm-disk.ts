import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import type { LimitedStep } from "../memory-limit.js";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const DISK_BYTES = 4 * 1024 ** 3;

/** A machine that is emulated takes about so many times as long. */
const SLOWNESS = 10;

/** What a step may need to run: not types, and of the SQLite binding not what it is compiled from. */
const LEFT_OUT =
  /\.(d\.[cm]?ts|map|md)$|\/better-sqlite3\/(deps|src)$|\.(o|a|gyp)$|\/obj(\.target)?$/;

const quote = (text: string | number) => `'${`${text}`.replaceAll("'", `'\\''`)}'`;

function callOf({ script, args = [], env = {}, limit, timeoutMs, sigterm }: LimitedStep): string {
  const seconds = Math.ceil((timeoutMs * SLOWNESS) / 1000);
  const settings = [seconds, limit?.maxBytes ?? "max", limit?.highBytes ?? "max"];
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const command = ["env", ...variables, "node", script, ...args];
  return ["step", ...[...settings, sigterm?.onLine ?? "", ...command].map(quote)].join(" ");
}

/** Lists the folders of the packages that the library needs, itself left out. */
function packages(): string[] {
  const args = ["ls", "--omit=dev", "--omit=peer", "--all", "--parseable"];
  const paths = execFileSync("npm", args, { cwd: ROOT, encoding: "utf8" }).trim().split("\n");
  return paths.map((path) => relative(ROOT, path)).filter((path) => path !== "");
}

/** The longest that all the steps may take in the virtual machine, and it to start. */
export function longestMs(steps: readonly LimitedStep[]): number {
  return 120_000 + steps.reduce((sum, step) => sum + step.timeoutMs * SLOWNESS, 0);
}

/** Makes the disk image of a run: the project as it is installed, the folders of the steps' scripts, and what to do. */
export function makeDisk(steps: readonly LimitedStep[], mke2fs: string, scratch: string): string {
  const content = join(scratch, "content");
  const folders = new Set(steps.map((step) => dirname(step.script)));
  const nested = new Set(packages().map((path) => path.split("/node_modules/")[0]!));
  for (const path of ["dist", "migrations", "package.json", ...nested, ...folders])
    cpSync(join(ROOT, path), join(content, "project", path), {
      recursive: true,
      filter: (source) => !LEFT_OUT.test(source),
    });
  mkdirSync(join(content, "work"));
  const functions = readFileSync(new URL("./vm-steps.sh", import.meta.url), "utf8");
  writeFileSync(join(content, "run"), `${functions}\n${steps.map(callOf).join("\n")}\n`);
  const image = join(scratch, "disk.ext4");
  execFileSync(mke2fs, ["-q", "-t", "ext4", "-d", content, image, `${DISK_BYTES / 1024}k`]);
  rmSync(content, { recursive: true });
  return image;
}
