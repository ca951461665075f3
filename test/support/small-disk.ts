import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

function run(command: string, ...args: string[]): string | null {
  const { error, status, stderr } = spawnSync(command, args, { encoding: "utf8" });
  if (error !== undefined) return error.message;
  return status === 0 ? null : stderr.trim();
}

/** A file system of a few MiB in memory, that lasts as long as the test. */
export interface SmallDisk {
  readonly path: string;
  /** Makes the file system read-only, or writable again; no file on it may be open for writing. */
  readonly setReadOnly: (readOnly: boolean) => void;
}

/** Mounts a small disk; answers the reason when that is not possible here. */
export function mountSmallDisk(bytes: number): SmallDisk | string {
  if (process.getuid?.() !== 0) return "only root may mount a file system";
  const path = mkdtempSync(join(tmpdir(), "agstate-disk-"));
  const failure = run("mount", "-t", "tmpfs", "-o", `size=${bytes}`, "tmpfs", path);
  onTestFinished(() => {
    if (failure === null) run("umount", "-l", path);
    rmSync(path, { recursive: true, force: true });
  });
  if (failure !== null) return `no file system can be mounted here: ${failure}`;
  const setReadOnly = (readOnly: boolean) => {
    const problem = run("mount", "-o", `remount,${readOnly ? "ro" : "rw"}`, path);
    if (problem !== null) throw new Error(`cannot mount ${path} anew: ${problem}`);
  };
  return { path, setReadOnly };
}
