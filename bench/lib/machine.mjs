import { spawnSync } from "node:child_process";
import { statfsSync } from "node:fs";
import { cpus, tmpdir, totalmem } from "node:os";
import { fileURLToPath } from "node:url";

/** The numbers by which Linux tells file systems apart (statfs(2)). */
const FILE_SYSTEMS = new Map([
  [0xef53, "ext4"],
  [0x01021994, "tmpfs"],
  [0x58465342, "xfs"],
  [0x9123683e, "btrfs"],
  [0x794c7630, "overlayfs"],
  [0x2fc12fc1, "zfs"],
  [0x6969, "nfs"],
]);

/** What the figures depend on: never a name or a path of the machine. */
export function machine() {
  return {
    cpu: cpus()[0]?.model.trim() ?? "unknown",
    cores: cpus().length,
    memory: `${Math.round(totalmem() / 2 ** 30)} GiB`,
    node: process.version,
    platform: `${process.platform} ${process.arch}`,
    filesystem: fileSystem(),
  };
}

function fileSystem() {
  try {
    const { type } = statfsSync(tmpdir());
    return FILE_SYSTEMS.get(type) ?? `0x${type.toString(16)}`;
  } catch {
    return null;
  }
}

/** The commit that was measured, with `-dirty` when files differ from it (results aside); null outside of Git. */
export function measuredCommit() {
  const cwd = fileURLToPath(new URL("../..", import.meta.url));
  const git = (...args) => spawnSync("git", args, { cwd, encoding: "utf8" });
  const head = git("rev-parse", "--verify", "--quiet", "HEAD");
  if (head.status !== 0) return null;
  const changes = git("status", "--porcelain", "--", ".", ":!bench/results");
  return head.stdout.trim() + (changes.stdout?.trim() ? "-dirty" : "");
}
