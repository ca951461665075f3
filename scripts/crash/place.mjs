import { join } from "node:path";
import pg from "pg";
import { startServer } from "../../bench/lib/postgres-server.mjs";
import { discard, scratch } from "../../bench/lib/scratch.mjs";
import { openStore } from "../../dist/index.js";

/**
 * Makes a store that is gone when it is closed: SQLite's in a temporary folder, or PostgreSQL's in a
 * schema of its own, of the server that AGSTATE_TEST_DATABASE_URL names or of one of the run's own.
 */
export async function makePlace(kind) {
  const { url, remove } = await { sqlite, postgres }[kind]();
  const store = await openStore(url);
  const workflows = new Map();
  return {
    kind,
    url,
    /** Makes a branch that is not there yet, in a workflow that all branches of a sort share. */
    async branch(name) {
      const [sort, branch] = name.split("/");
      if (!workflows.has(sort)) workflows.set(sort, store.createWorkflow(sort));
      const workflow = await workflows.get(sort);
      return {
        workflow,
        branch: await workflow.branch({ agent: "agent", branch, create: "always" }),
      };
    },
    /** Tells what fsck and the backend find wrong with what is stored. */
    async check() {
      const found = (await store.checkStructure()).map((problem) => JSON.stringify(problem));
      for (const workflow of workflows.values()) {
        const { problems, unreachable } = await (await workflow).fsck();
        found.push(...problems.map((problem) => JSON.stringify(problem)));
        if (unreachable > 0) found.push(`${unreachable} objects that nothing reaches`);
      }
      return found;
    },
    async close() {
      await store.close();
      await remove();
    },
  };
}

async function sqlite() {
  const folder = scratch();
  return { url: `sqlite:${join(folder, "store")}`, remove: () => discard(folder) };
}

async function postgres() {
  const given = process.env.AGSTATE_TEST_DATABASE_URL;
  const server = given ? { url: given, stop: () => undefined } : await startServer();
  const url = new URL(server.url);
  const schema = `crash_${process.pid}`;
  url.searchParams.set("schema", schema);
  const remove = async () => {
    const client = new pg.Client(server.url);
    await client.connect();
    await client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
    await client.end();
    await server.stop();
  };
  return { url: url.toString(), remove };
}
