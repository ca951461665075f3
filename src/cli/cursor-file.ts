import { open, readFile, rename } from "node:fs/promises";
import { AgstateError } from "../core/errors.js";
import { quoteForMessage } from "../core/names.js";

/** A file that keeps how far something was delivered: replaced as a whole, so that it is never half of a position. */
export class CursorFile {
  constructor(private readonly name: string) {}

  /**
   * The position that is kept; undefined when there is no such file.
   *
   * @throws AgstateError `INVALID_ARGUMENT`
   */
  async read(): Promise<string | undefined> {
    try {
      const text = (await readFile(this.name, "utf8")).trim();
      if (text !== "") return text;
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw this.unusable("read", cause as Error);
    }
    throw this.unusable("use", new Error("it is empty"));
  }

  /** @throws AgstateError `INVALID_ARGUMENT` */
  async write(cursor: string): Promise<void> {
    const next = `${this.name}.new`;
    try {
      const file = await open(next, "w", 0o600);
      try {
        await file.writeFile(`${cursor}\n`);
        await file.datasync();
      } finally {
        await file.close();
      }
      await rename(next, this.name);
    } catch (cause) {
      throw this.unusable("write", cause as Error);
    }
  }

  private unusable(what: string, cause: Error): AgstateError {
    return new AgstateError(
      "INVALID_ARGUMENT",
      `cannot ${what} ${quoteForMessage(this.name)}, which keeps how far the audit was delivered: ${cause.message}`,
      { file: this.name },
      { cause },
    );
  }
}
