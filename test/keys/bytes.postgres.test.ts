import { expect, it } from "vitest";
import { testKeys } from "../support/keys.js";
import { MARKED_RULES, markedWorkflow } from "../support/marked-workflow.js";
import { schemaOf, withClient } from "../support/postgres.js";
import { makeStore } from "../support/stores.js";

const SENSITIVE = { classification: "sensitive", storageRegion: "eu" } as const;

/** Every row of every table of a schema, as hex of its bytes where it has some. */
function dump(url: string): Promise<string> {
  return withClient(async (client) => {
    const schema = schemaOf(url);
    const { rows: tables } = await client.query(
      "SELECT quote_ident(relname) AS name FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = $1::regnamespace",
      [schema],
    );
    let text = "";
    for (const { name } of tables) {
      const { rows } = await client.query(`SELECT t::text AS row FROM ${schema}.${name} t`);
      text += `${name}\n${rows.map(({ row }) => row).join("\n")}\n`;
    }
    return text;
  });
}

it("no payload is in any row of an encrypted PostgreSQL store, and all are in those of another", async () => {
  for (const keys of [testKeys(), undefined]) {
    const { store, url } = await makeStore("postgres", {
      region: "eu",
      governance: MARKED_RULES,
      ...(keys && { keys }),
    });
    const { workflow, markers } = await markedWorkflow(store, SENSITIVE);
    expect((await workflow.fsck()).problems).toEqual([]);
    const text = await dump(url);
    const places = Object.keys(markers).filter((place) => {
      const mark = markers[place] as string;
      return text.includes(mark) || text.includes(Buffer.from(mark).toString("hex"));
    });
    expect(places).toEqual(keys === undefined ? Object.keys(markers) : []);
  }
});
