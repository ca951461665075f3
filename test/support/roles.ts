import pg from "pg";
import { migrateStore } from "../../src/index.js";
import { randomHex } from "../../src/testing/index.js";
import { newSchema, withClient } from "./postgres.js";

/** The three roles of one store, with names that must be quoted, each with a login that is its member. */
export interface StoreRoles {
  /** As whoever made the store. */
  readonly url: string;
  readonly names: { readonly writer: string; readonly reader: string; readonly maintainer: string };
  readonly as: { readonly writer: string; readonly reader: string; readonly maintainer: string };
  readonly drop: () => Promise<void>;
}

/** Makes a store in a schema of its own, and its roles. */
export async function storeWithRoles(): Promise<StoreRoles> {
  const { url, drop } = newSchema();
  const mark = randomHex(6);
  const name = (role: string) => `a"${role}' ${mark}`;
  const names = { writer: name("w"), reader: name("r"), maintainer: name("m") };
  await migrateStore(url, { roles: names });
  const all = Object.values(names).map((role) => pg.escapeIdentifier(role));
  const logins = all.map((role) => `${role.slice(0, -1)} login"`);
  await withClient(async (client) => {
    for (const [i, login] of logins.entries())
      await client.query(`CREATE ROLE ${login} LOGIN PASSWORD 'secret' IN ROLE ${all[i]}`);
  });
  const as = (role: string) => {
    const place = new URL(url);
    place.username = encodeURIComponent(`${role} login`);
    place.password = "secret";
    return place.toString();
  };
  return {
    url,
    names,
    as: { writer: as(names.writer), reader: as(names.reader), maintainer: as(names.maintainer) },
    async drop() {
      await drop();
      await withClient(async (client) => {
        for (const role of [...logins, ...all]) await client.query(`DROP OWNED BY ${role}`);
        await client.query(`DROP ROLE ${[...logins, ...all].join(", ")}`);
      });
    },
  };
}
