import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import { Connection } from "../../src/storage/postgres/connection.js";
import { int4s, int8s, texts, uuids } from "../../src/storage/postgres/parameters.js";
import { parseTarget } from "../../src/storage/postgres/target.js";
import { schemaOf, schemaPlace, serverUrl, withClient } from "../support/postgres.js";
import { agstateError } from "../support/stores.js";

/** A connection of one session. */
function oneSession(): Connection {
  const connection = new Connection({
    target: parseTarget(serverUrl()),
    poolMax: 1,
    retryForMs: 0,
    statementTimeoutMs: 20_000,
  });
  onTestFinished(() => connection.close());
  return connection;
}

const echo = { name: "echo", operation: "echo", text: "SELECT $1::text" };

const known = (connection: Connection) =>
  connection.query<{ name: string; runs: number }>(
    "SELECT name, (generic_plans + custom_plans)::int AS runs FROM pg_prepared_statements",
  );

describe("a prepared statement", () => {
  it("gets its values as they are", async () => {
    const connection = oneSession();
    const statement = {
      name: "values",
      operation: "values",
      text: `SELECT json_build_array($1::int[], $2::bigint[], $3::text[], $4::uuid[],
        encode($5::bytea, 'hex'), $6::text, $7::bigint)::text`,
    };
    const text = fc.string({ unit: "binary" }).map((t) => t.replaceAll("\0", ""));
    const bytes = fc.uint8Array({ maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer()),
        fc.array(fc.option(fc.maxSafeInteger())),
        fc.array(fc.option(text)),
        fc.array(fc.uuid()),
        fc.oneof(bytes, fc.array(bytes)),
        fc.option(text),
        fc.maxSafeInteger(),
        async (ints, bigints, strings, ids, body, one, number) => {
          const answer = await connection.call(statement, [
            int4s(ints),
            int8s(bigints),
            texts(strings),
            uuids(ids),
            body,
            one,
            `${number}`,
          ]);
          const whole = body instanceof Uint8Array ? Buffer.from(body) : Buffer.concat(body);
          expect(JSON.parse(answer ?? "null")).toEqual([
            ...[ints, bigints, strings, ids],
            ...[whole.toString("hex"), one, number],
          ]);
        },
      ),
    );
    expect((await known(connection)).length).toBe(1);
  });

  it("is parsed once in a session", async () => {
    const connection = oneSession();
    for (let n = 0; n < 10; n++) expect(await connection.call(echo, [`${n}`])).toBe(`${n}`);
    expect(await connection.write<{ text: string }>({ ...echo, name: "rows" }, ["x"])).toEqual([
      { text: "x" },
    ]);
    expect(await known(connection)).toEqual(
      expect.arrayContaining([
        { name: "echo", runs: 10 },
        { name: "rows", runs: 1 },
      ]),
    );
  });

  it("answers nothing where there is no row, and NULL as null", async () => {
    const connection = oneSession();
    expect(await connection.call(echo, [null])).toBe(null);
    const none = { name: "none", operation: "none", text: "SELECT 1 WHERE $1::text = 'x'" };
    expect(await connection.call(none, ["x"])).toBe("1");
    expect(await connection.call(none, ["y"])).toBe(null);
  });

  it("that fails leaves the next call nothing to stumble over", async () => {
    const connection = oneSession();
    const divide = { name: "divide", operation: "divide", text: "SELECT (1 / $1::int)::text" };
    await expect(connection.call(divide, ["0"])).rejects.toEqual(
      agstateError("STORE_UNAVAILABLE", { code: "22012" }),
    );
    expect(await connection.call(divide, ["1"])).toBe("1");
  });
});

describe("a session that does not know a statement any more", () => {
  for (const [what, spoil] of [
    ["was reset", "DISCARD ALL"],
    ["knows another", "DEALLOCATE ALL; PREPARE other AS SELECT 1"],
  ] as const) {
    it(`and ${what} is asked without a name, once and for all`, async () => {
      const connection = oneSession();
      expect(await connection.call(echo, ["before"])).toBe("before");
      await connection.query(spoil);
      expect(await connection.call(echo, ["after"])).toBe("after");
      expect(await connection.write(echo, ["then"])).toEqual([{ text: "then" }]);
      expect(await known(connection)).toEqual([]);
    });
  }

  it("is asked without a name where the name is taken", async () => {
    const connection = oneSession();
    await connection.query("PREPARE echo AS SELECT 'another'");
    expect(await connection.call(echo, ["mine"])).toBe("mine");
    expect(await connection.call(echo, ["again"])).toBe("again");
  });

  it("is asked anew where what it answers has become something else", async () => {
    const schema = schemaOf(schemaPlace());
    const connection = oneSession();
    const make = (type: string) =>
      withClient((client) =>
        client.query(`CREATE SCHEMA IF NOT EXISTS ${schema};
          DROP FUNCTION IF EXISTS ${schema}.f(int);
          CREATE FUNCTION ${schema}.f(int) RETURNS ${type} LANGUAGE sql AS 'SELECT $1::${type}'`),
      );
    const statement = { name: "f", operation: "f", text: `SELECT ${schema}.f($1)` };
    await make("int");
    expect(await connection.call(statement, ["1"])).toBe("1");
    await make("text");
    expect(await connection.call(statement, ["2"])).toBe("2");
  });
});
