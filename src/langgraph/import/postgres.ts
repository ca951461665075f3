import { AgstateError } from "../../core/errors.js";
import { quoteForMessage } from "../../core/names.js";
import { toldError, toldMessage } from "../../core/server-error.js";
import { type CheckpointPlace, type CheckpointSource, loadPeer, noTables, PAGE } from "./source.js";

/** What is used of the saver's own pool. */
interface Pool {
  on(event: "error", listener: () => void): void;
  query(text: string, values: readonly unknown[]): Promise<{ readonly rows: CheckpointPlace[] }>;
}

/**
 * Opens the checkpoints of a PostgresSaver; `?schema=NAME` in the URL names another schema than `public`.
 *
 * @throws AgstateError `INVALID_ARGUMENT`, `STORE_NOT_FOUND`, `STORE_UNAVAILABLE`
 */
export async function openPostgresSource(url: string): Promise<CheckpointSource> {
  const { connection, schema } = parse(url);
  const { PostgresSaver } = await loadPeer(
    "@langchain/langgraph-checkpoint-postgres",
    () => import("@langchain/langgraph-checkpoint-postgres"),
  );
  // The saver puts the name between quotes as it is.
  const quoted = schema.replaceAll('"', '""');
  const saver = PostgresSaver.fromConnString(connection, { schema: quoted });
  const { pool } = saver as unknown as { readonly pool: Pool };
  // A connection that breaks while idle is met by the next query.
  pool.on("error", () => {});
  const page = (after?: CheckpointPlace) =>
    pool.query(
      `SELECT thread_id AS thread, checkpoint_ns AS namespace, checkpoint_id AS id
       FROM "${quoted}".checkpoints
       ${after ? "WHERE (thread_id, checkpoint_ns, checkpoint_id) > ($1, $2, $3)" : ""}
       ORDER BY thread_id, checkpoint_ns, checkpoint_id LIMIT ${PAGE}`,
      after ? [after.thread, after.namespace, after.id] : [],
    );
  let first: CheckpointPlace[];
  try {
    first = (await page()).rows;
  } catch (cause) {
    await saver.end();
    if ((cause as { code?: string }).code === "42P01") {
      throw noTables(`the schema ${quoteForMessage(schema)} of that database`, toldError(cause));
    }
    throw new AgstateError(
      "STORE_UNAVAILABLE",
      `the database to import from cannot be read: ${toldMessage(cause) || (cause as { code?: string }).code}`,
      {},
      { cause: toldError(cause) },
    );
  }
  return {
    async *places() {
      let rows = first;
      while (rows.length > 0) {
        yield* rows;
        rows = (await withoutValues(page(rows.at(-1)))).rows;
      }
    },
    read: ({ thread, namespace, id }) =>
      withoutValues(
        saver.getTuple({
          configurable: { thread_id: thread, checkpoint_ns: namespace, checkpoint_id: id },
        }),
      ),
    close: async () => void (await saver.end()),
  };
}

/** What a server says of a statement may hold what that was given. */
async function withoutValues<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw toldError(error);
  }
}

function parse(url: string): { connection: string; schema: string } {
  if (!/^postgres(ql)?:\/\//.test(url) || !URL.canParse(url)) {
    throw new AgstateError(
      "INVALID_ARGUMENT",
      "the source must be the URL of a PostgreSQL database, such as postgres://user@host/database",
    );
  }
  const parsed = new URL(url);
  const schema = parsed.searchParams.get("schema") || "public";
  parsed.searchParams.delete("schema");
  return { connection: parsed.toString(), schema };
}
