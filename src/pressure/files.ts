import { closeSync, existsSync, openSync, readSync } from "node:fs";

const FIRST_BYTES = 64 * 1024;

/** More than any file of a kernel that is read here; what is longer is not one. */
const MOST_BYTES = 16 * 1024 * 1024;

/** What the kernel says of an open file whose control group or process is gone; the path may be another's by now. */
const GONE = new Set(["ENODEV", "ENOENT", "EBADF", "ESRCH"]);

/** What passes: the file may well be there. */
const PASSING = new Set(["EMFILE", "ENFILE", "ENOMEM", "EAGAIN", "EINTR"]);

interface Kept {
  fd: number | undefined;
  /** Why it could not be read when that was last tried. */
  failure: string | undefined;
}

/**
 * Small files of the kernel that are read again and again: opened once, and read at position 0 into one buffer.
 *
 * Nothing here throws. A file that cannot be read is not tried again before `retry`, except after
 * errors that pass, so that a file that is not there costs nothing.
 */
export class Files {
  private readonly kept = new Map<string, Kept>();
  private buffer = Buffer.allocUnsafe(FIRST_BYTES);
  private wasLost = false;

  /** @param root - put before every path. */
  constructor(private readonly root: string) {}

  exists(path: string): boolean {
    return existsSync(this.root + path);
  }

  /** The text of a file that the kernel gives whole at one read; undefined where it cannot be read. */
  read(path: string): string | undefined {
    return this.attempt(path, (fd) => this.textOf(fd, false));
  }

  /** The text of a file that the kernel gives in pieces, such as a list of mounts. */
  readAll(path: string): string | undefined {
    return this.attempt(path, (fd) => this.textOf(fd, true));
  }

  /** The code of the error for which a file could not be read, such as `EACCES`. */
  failureOf(path: string): string | undefined {
    return this.kept.get(path)?.failure;
  }

  /** Whether a file could not be read for something that passes, such as too many open files. */
  isPassing(path: string): boolean {
    return PASSING.has(this.failureOf(path) ?? "");
  }

  /** Whether, since this was last asked, a file went that had been read before. */
  takeLost(): boolean {
    const lost = this.wasLost;
    this.wasLost = false;
    return lost;
  }

  /** Tries again, when they are next asked for, what could not be read. */
  retry(): void {
    for (const file of this.kept.values()) file.failure = undefined;
  }

  close(): void {
    for (const file of this.kept.values()) closeQuietly(file);
    this.kept.clear();
  }

  private attempt(path: string, read: (fd: number) => string): string | undefined {
    let file = this.kept.get(path);
    if (file === undefined) {
      file = { fd: undefined, failure: undefined };
      this.kept.set(path, file);
    }
    if (file.failure !== undefined && !PASSING.has(file.failure)) return undefined;
    const wasOpen = file.fd !== undefined;
    const text = this.tryOnce(path, file, read);
    if (text !== undefined || !wasOpen || !GONE.has(file.failure ?? "")) return text;
    const again = this.tryOnce(path, file, read);
    if (again === undefined) this.wasLost = true;
    return again;
  }

  private tryOnce(path: string, file: Kept, read: (fd: number) => string): string | undefined {
    try {
      file.fd ??= openSync(this.root + path, "r");
      const text = read(file.fd);
      file.failure = undefined;
      return text;
    } catch (error) {
      file.failure = (error as NodeJS.ErrnoException).code ?? "EIO";
      if (!PASSING.has(file.failure)) closeQuietly(file);
      return undefined;
    }
  }

  private textOf(fd: number, inPieces: boolean): string {
    let length = 0;
    for (;;) {
      if (length === this.buffer.length) this.grow();
      const got = readSync(fd, this.buffer, length, this.buffer.length - length, length);
      length += got;
      if (got === 0) break;
      // At another position than 0 the kernel makes the whole file anew, which for memory.stat is dear.
      const isWhole = length < this.buffer.length && this.buffer[length - 1] === 0x0a;
      if (isWhole && !inPieces) break;
    }
    return this.buffer.toString("utf8", 0, length);
  }

  private grow(): void {
    if (this.buffer.length >= MOST_BYTES) throw new RangeError("the file is too long");
    const larger = Buffer.allocUnsafe(this.buffer.length * 2);
    this.buffer.copy(larger);
    this.buffer = larger;
  }
}

function closeQuietly(file: Kept): void {
  const { fd } = file;
  file.fd = undefined;
  if (fd === undefined) return;
  try {
    closeSync(fd);
  } catch {
    // It is gone either way.
  }
}
