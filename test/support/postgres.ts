import pg from "pg";
import { onTestFinished } from "vitest";
import { randomHex } from "../../src/testing/index.js";

/** The server that the tests use; see `postgres-server.ts`. */
export function serverUrl(): string {
  const url = process.env.AGSTATE_TEST_DATABASE_URL;
  if (url === undefined || url === "") throw new Error("AGSTATE_TEST_DATABASE_URL names no server");
  return url;
}

/**
 * The URL of a schema that is not there yet, and that goes when the test ends.
 *
 * @param through the URL of a way to the same server
 */
export function schemaPlace(through = serverUrl()): string {
  const { url, drop } = newSchema(through);
  onTestFinished(drop);
  return url;
}

/** The name of the schema that a store's URL names, as an SQL identifier. */
export function schemaOf(url: string): string {
  return pg.escapeIdentifier(new URL(url).searchParams.get("schema") as string);
}

/** The URL of a schema that is not there yet, in a name that must be quoted, and what removes it. */
export function newSchema(through = serverUrl()): {
  readonly url: string;
  readonly drop: () => Promise<void>;
} {
  const schema = `test "${randomHex(6)}`;
  const url = new URL(through);
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
export async function withClient<T>(
  work: (client: pg.Client) => Promise<T>,
  url = serverUrl(),
): Promise<T> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
