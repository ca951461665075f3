import { mkdir, open, readFile, rename, rm, rmdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * Builds files under temporary names, puts them in place together, and takes
 * everything away again when something fails on the way.
 */
export class Staging {
  readonly #placements: { readonly from: string; readonly to: string }[] = [];
  readonly #undo: (() => Promise<unknown>)[] = [];

  /** Makes a folder and those above it, as far as they are missing. */
  async folder(path: string): Promise<void> {
    const first = await mkdir(path, { recursive: true });
    if (first === undefined) return;
    this.#undo.push(async () => {
      for (let made = path; made.length >= first.length; made = dirname(made)) await rmdir(made);
    });
  }

  /** Answers for a file that the caller is about to make: a failure removes it. */
  temporary(path: string): string {
    this.#undo.push(() => rm(path, { force: true }));
    return path;
  }

  /** Writes a new file and brings it to the disk. */
  async write(path: string, content: string | Uint8Array, mode = 0o666): Promise<void> {
    const file = await open(path, "wx", mode);
    this.temporary(path);
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
  }

  /** Removes a temporary file that turned out not to be needed. */
  async discard(path: string): Promise<void> {
    await rm(path);
  }

  /** Notes that a file takes its place at the end, after those noted before it. */
  placeLater(from: string, to: string): void {
    this.#placements.push({ from, to });
  }

  /** Puts the files in place. */
  async place(): Promise<void> {
    for (const { from, to } of this.#placements) {
      const before = await readFile(to).catch((error: NodeJS.ErrnoException) => {
        if (error.code === "ENOENT") return undefined;
        throw error;
      });
      await rename(from, to);
      this.#undo.push(() => (before === undefined ? rm(to) : writeFile(to, before)));
    }
  }

  /** Takes away all that was made, last first; what cannot be undone is left. */
  async rollback(): Promise<void> {
    for (const step of this.#undo.splice(0).reverse()) await step().catch(() => undefined);
  }
}

/** Brings the entries of a folder to the disk. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
