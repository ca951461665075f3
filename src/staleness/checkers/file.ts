import type { BigIntStats } from "node:fs";
import { constants, type FileHandle, open, stat } from "node:fs/promises";
import { createSha256 } from "../../objects/hash.js";
import { findBelow, isMissing, type NotThere, unreadable } from "../rooted.js";
import type { Checker, Observation } from "../types.js";
import { comparesTokens } from "./tokens.js";

/** Largest file whose content is looked at, in bytes. */
export const FILE_MAX_BYTES = 64 * 1024 * 1024;

const PIECE_BYTES = 256 * 1024;

/** Where there is no such flag, a symbolic link is found by comparing what was opened with what is there. */
const FLAGS = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

export interface FileCheckerOptions {
  /** The directory that all ids are relative to, and that none leads out of. */
  readonly root: string;
}

/** Knows files by their path below a root: their version is the SHA-256 of their content. */
export function fileChecker({ root }: FileCheckerOptions): Checker {
  return {
    async observe({ id }, { signal }) {
      const found = await findBelow(root, id);
      if ("kind" in found) return found;
      let file: FileHandle;
      try {
        file = await open(found.path, FLAGS);
      } catch (error) {
        // It was there a moment ago.
        if (isMissing(error) || codeOf(error) === "ELOOP") return CHANGED;
        return unreadable("it", error);
      }
      try {
        return await observeOpen(file, found.path, signal);
      } catch (error) {
        signal.throwIfAborted();
        return isMissing(error) ? CHANGED : unreadable("it", error);
      } finally {
        await file.close();
      }
    },
    compare: comparesTokens(/^sha256:[0-9a-f]{64}$/, "of a file"),
  };
}

const CHANGED: NotThere = { kind: "unknown", why: "it changed while it was read", again: true };

async function observeOpen(
  file: FileHandle,
  path: string,
  signal: AbortSignal,
): Promise<Observation> {
  const before = await file.stat({ bigint: true });
  if (!before.isFile()) return { kind: "unknown", why: "it is no regular file" };
  if (before.size > FILE_MAX_BYTES) {
    return {
      kind: "unknown",
      why: `it has ${before.size} bytes, and files of at most ${FILE_MAX_BYTES} are read`,
    };
  }
  const digest = await digestOf(file, Number(before.size), signal);
  // What was read is what the path, in which no link was left, still names: else it was put there in between.
  if (digest === null || !isSame(before, await file.stat({ bigint: true }))) return CHANGED;
  if (!isSame(before, await stat(path, { bigint: true }))) return CHANGED;
  return { kind: "version", version: `sha256:${digest}`, shown: `${before.size} bytes` };
}

/** SHA-256 of a file's content; null when it has not as many bytes as it said. */
async function digestOf(
  file: FileHandle,
  size: number,
  signal: AbortSignal,
): Promise<string | null> {
  const sha256 = createSha256();
  const piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, size + 1));
  for (let position = 0; ; ) {
    signal.throwIfAborted();
    const { bytesRead } = await file.read(piece, 0, piece.length, position);
    if (bytesRead === 0) {
      return position === size ? Buffer.from(sha256.digest()).toString("hex") : null;
    }
    position += bytesRead;
    if (position > size) return null;
    sha256.update(piece.subarray(0, bytesRead));
  }
}

function isSame(one: BigIntStats, other: BigIntStats): boolean {
  return (["dev", "ino", "size", "mtimeNs", "ctimeNs"] as const).every(
    (member) => one[member] === other[member],
  );
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code;
}
