import { closeSync, openSync, readdirSync, readFileSync, readSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { withClient } from "../support/postgres.js";

const CHUNK_BYTES = 4 * 1024 * 1024;

/** Which of some short texts stand anywhere in the files below a folder, and in which file each was met first. */
export function textsInFiles(folder: string, texts: readonly string[]): Map<string, string> {
  const found = new Map<string, string>();
  const longest = Math.max(...texts.map((text) => text.length));
  const chunk = Buffer.alloc(CHUNK_BYTES);
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    const file = openSync(path, "r");
    let kept = 0;
    for (;;) {
      const read = readSync(file, chunk, kept, chunk.length - kept, null);
      if (read === 0) break;
      const end = kept + read;
      const bytes = chunk.subarray(0, end);
      for (const text of texts) if (!found.has(text) && bytes.includes(text)) found.set(text, path);
      // A text may begin at the end of one chunk and end in the next.
      kept = Math.min(end, longest);
      chunk.copy(chunk, 0, end - kept, end);
    }
    closeSync(file);
  }
  return found;
}

/** Which of some texts stand in any column of any row of a store's tables, as the server reads them. */
export async function textsInTables(
  url: string,
  texts: readonly string[],
): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  await withClient(async (client) => {
    const schema = new URL(url).searchParams.get("schema") as string;
    const { rows: tables } = await client.query<{ name: string }>(
      "SELECT tablename AS name FROM pg_tables WHERE schemaname = $1",
      [schema],
    );
    for (const { name } of tables) {
      const table = [schema, name].map(pg.escapeIdentifier).join(".");
      const { rows } = await client.query({ text: `SELECT * FROM ${table}`, rowMode: "array" });
      for (const value of (rows as unknown[][]).flat()) {
        const bytes = Buffer.isBuffer(value) ? value : Buffer.from(String(value));
        for (const text of texts)
          if (!found.has(text) && bytes.includes(text)) found.set(text, name);
      }
    }
  }, new URL(url).href.split("?")[0]);
  return found;
}

/** All bytes of a store in a folder of its own. */
export function bytesOfStore(directory: string, name: string): Buffer {
  const folder = join(directory, name);
  return Buffer.concat(readdirSync(folder).map((file) => readFileSync(join(folder, file))));
}
