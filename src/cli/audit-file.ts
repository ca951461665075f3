import { type FileHandle, open } from "node:fs/promises";
import { AgstateError } from "../core/errors.js";
import { quoteForMessage } from "../core/names.js";

/** How much of a file's end is looked at first; more, when there is no cursor in it. */
const TAIL_BYTES = 1024 * 1024;

/** Where a file of events ends: the last cursor in it, and how far logs were told in the lines after that. */
export interface FilePosition {
  readonly cursor: string | null;
  readonly after: readonly { readonly ref: string; readonly seq: number }[];
}

/**
 * A file to which events are appended as JSON lines, so that they are on the disk, and each once, whenever the process is
 * killed: what it begins with is what it ends with, to the last whole line.
 */
export class AuditFile {
  private constructor(
    private readonly file: FileHandle,
    readonly position: FilePosition,
  ) {}

  /**
   * Opens a file, or makes it; a last line that is torn is cut off, since its event is told again.
   *
   * @throws AgstateError `INVALID_ARGUMENT` when it cannot be opened or holds something else
   */
  static async open(name: string): Promise<AuditFile> {
    let file: FileHandle;
    try {
      // Events name people and what they do: nobody else's to read unless somebody says so.
      file = await open(name, "a+", 0o600);
    } catch (cause) {
      throw new AgstateError(
        "INVALID_ARGUMENT",
        `cannot open ${quoteForMessage(name)}: ${(cause as Error).message}`,
        { file: name },
        { cause },
      );
    }
    try {
      return new AuditFile(file, await recover(file, name));
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** Appends whole lines, and waits until they are on the disk. */
  async append(lines: readonly string[]): Promise<void> {
    await this.file.appendFile(lines.map((line) => `${line}\n`).join(""));
    await this.file.datasync();
  }

  async close(): Promise<void> {
    await this.file.close();
  }
}

async function recover(file: FileHandle, name: string): Promise<FilePosition> {
  const { size } = await file.stat();
  for (let wanted = TAIL_BYTES; ; wanted *= 4) {
    const from = Math.max(0, size - wanted);
    const bytes = Buffer.alloc(size - from);
    await file.read(bytes, 0, bytes.length, from);
    const end = bytes.lastIndexOf(0x0a) + 1;
    if (end === 0 && from > 0) continue;
    // What does not begin the file begins in the middle of a line.
    const begin = from === 0 ? 0 : bytes.indexOf(0x0a) + 1;
    const lines = bytes.toString("utf8", begin, end).split("\n").slice(0, -1);
    const position = positionOf(lines, name);
    if (position.cursor === null && from > 0) continue;
    if (end < bytes.length) {
      await file.truncate(from + end);
      await file.datasync();
    }
    return position;
  }
}

function positionOf(lines: readonly string[], name: string): FilePosition {
  const after: { ref: string; seq: number }[] = [];
  for (const line of [...lines].reverse()) {
    const { ref, seq, cursor } = parse(line, name);
    if (typeof cursor === "string") return { cursor, after };
    after.push({ ref: String(ref), seq: Number(seq) });
  }
  return { cursor: null, after };
}

function parse(line: string, name: string): Record<string, unknown> {
  try {
    const value = JSON.parse(line) as Record<string, unknown>;
    if (typeof value.ref === "string" && Number.isSafeInteger(value.seq)) return value;
  } catch {
    // The same as a line of another form.
  }
  throw new AgstateError(
    "INVALID_ARGUMENT",
    `${quoteForMessage(name)} holds a line that agstate audit did not write; name a new file, or one that it made`,
    { file: name },
  );
}
