import { existsSync } from "node:fs";
import { AgstateError } from "../../core/errors.js";
import { quoteForMessage } from "../../core/names.js";
import { type CheckpointPlace, type CheckpointSource, loadPeer, noTables, PAGE } from "./source.js";

/**
 * Opens the checkpoints of a SqliteSaver, for reading only.
 *
 * @throws AgstateError `INVALID_ARGUMENT`, `STORE_NOT_FOUND`
 */
export async function openSqliteSource(file: string): Promise<CheckpointSource> {
  const quoted = quoteForMessage(file);
  if (!existsSync(file)) {
    throw new AgstateError("STORE_NOT_FOUND", `there is no file ${quoted} to import from`, {
      file,
    });
  }
  const { SqliteSaver } = await loadPeer(
    "@langchain/langgraph-checkpoint-sqlite",
    () => import("@langchain/langgraph-checkpoint-sqlite"),
  );
  // The saver opens for writing only; its driver can do better.
  const { db: memory } = SqliteSaver.fromConnString(":memory:");
  const Database = memory.constructor as new (file: string, options: object) => typeof memory;
  memory.close();
  let db: typeof memory | undefined;
  try {
    db = new Database(file, { readonly: true, fileMustExist: true });
    const tables = db
      .prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name IN (?, ?)")
      .all("checkpoints", "writes");
    if (tables.length < 2) throw noTables(`the file ${quoted}`);
  } catch (cause) {
    db?.close();
    if (cause instanceof AgstateError) throw cause;
    throw new AgstateError(
      "INVALID_ARGUMENT",
      `the file ${quoted} cannot be read as a SQLite database: ${(cause as Error).message}`,
      { file },
      { cause },
    );
  }
  const open = db;
  // Reading, the saver would make its tables and change the journal's mode first.
  const saver = new SqliteSaver({
    prepare: (sql: string) => open.prepare(sql),
    pragma: () => undefined,
    exec: () => undefined,
  } as unknown as typeof open);
  const columns = "thread_id AS thread, checkpoint_ns AS namespace, checkpoint_id AS id";
  const page = (after?: CheckpointPlace) =>
    open
      .prepare(
        `SELECT ${columns} FROM checkpoints
         ${after ? "WHERE (thread_id, checkpoint_ns, checkpoint_id) > (?, ?, ?)" : ""}
         ORDER BY thread_id, checkpoint_ns, checkpoint_id LIMIT ${PAGE}`,
      )
      .all(...(after ? [after.thread, after.namespace, after.id] : [])) as CheckpointPlace[];
  return {
    async *places() {
      for (let rows = page(); rows.length > 0; rows = page(rows.at(-1))) yield* rows;
    },
    read: ({ thread, namespace, id }) =>
      saver.getTuple({
        configurable: { thread_id: thread, checkpoint_ns: namespace, checkpoint_id: id },
      }),
    close: async () => void open.close(),
  };
}
