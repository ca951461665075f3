import pg from "pg";
import { onTestFinished } from "vitest";
import { randomHex } from "../../src/testing/index.js";

/** The server that the tests use; see `postgres-server.ts`. */
export function serverUrl(): string {
  const url = process.env.AGSTATE_TEST_DATABASE_URL;
  if (url === undefined || url === "") throw new Error("AGSTATE_TEST_DATABASE_URL names no server");
  return url;
}

/** The URL of a schema that is not there yet, and that goes when the test ends. */
export function schemaPlace(): string {
  const { url, drop } = newSchema();
  onTestFinished(drop);
  return url;
}

/** The URL of a schema that is not there yet, in a name that must be quoted, and what removes it. */
export function newSchema(): { readonly url: string; readonly drop: () => Promise<void> } {
  const schema = `test "${randomHex(6)}`;
  const url = new URL(serverUrl());
  url.searchParams.set("schema", schema);
  return {
    url: url.toString(),
    drop: () =>
      withClient(async (client) => {
        await client.query(`DROP SCHEMA IF EXISTS ${client.escapeIdentifier(schema)} CASCADE`);
      }),
  };
}

/** Runs a piece of work on a connection of its own. */
export async function withClient<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(serverUrl());
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
