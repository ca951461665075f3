import { AgstateError } from "../../core/errors.js";
import { escapeLine } from "../render/escape.js";
import { plural } from "../render/sizes.js";
import type { Session } from "../session.js";

/** Whose checkpoints are imported. */
export type CheckpointsFrom = "langgraph-postgres" | "langgraph-sqlite";

/** `agstate import --from langgraph-... SOURCE`: each thread into a workflow of its own. */
export async function importFrom(
  session: Session,
  from: CheckpointsFrom,
  given: string,
): Promise<undefined> {
  const { out } = session;
  const { importCheckpoints, source } = await open(from, given);
  try {
    const { store, created } = await session.storeForImport();
    const progress = process.stderr.isTTY === true && !out.json;
    const done = await importCheckpoints(source, store, ({ checkpoints, skipped }) => {
      if (progress) process.stderr.write(`\r${checkpoints} checkpoints, ${skipped} there already`);
    });
    if (progress) process.stderr.write("\r\u001b[K");
    if (out.json) return void (await out.value(done));
    if (created !== null) await out.line(`Made a store in ${escapeLine(created)}.`);
    await out.line(
      `Imported ${plural(done.checkpoints - done.skipped, "checkpoint")}; ${done.skipped} were there already.`,
    );
    await out.line(
      `The source has ${plural(done.threads, "thread")}, ${plural(done.checkpoints, "checkpoint")} and ${plural(done.writes, "pending write")}; ${done.verified} checkpoints were read back and equal it.`,
    );
    if (done.threads > 0) await out.line("Next: agstate workflow list");
  } finally {
    await source.close();
  }
}

/** LangGraph's packages are the user's own, and loaded only here. */
async function open(from: CheckpointsFrom, given: string) {
  try {
    const source =
      from === "langgraph-postgres"
        ? await (await import("../../langgraph/import/postgres.js")).openPostgresSource(given)
        : await (await import("../../langgraph/import/sqlite.js")).openSqliteSource(given);
    const { importCheckpoints } = await import("../../langgraph/import/import.js");
    return { importCheckpoints, source };
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw cause;
    throw new AgstateError(
      "INVALID_ARGUMENT",
      "importing checkpoints needs LangGraph's packages; install them with npm install @langchain/core @langchain/langgraph-checkpoint",
      {},
      { cause },
    );
  }
}
