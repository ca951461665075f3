import { readdirSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { appendStatement } from "../../src/storage/postgres/append-call.js";
import { MIGRATIONS } from "../../src/storage/postgres/files.js";
import { queries } from "../../src/storage/postgres/queries.js";
import { readScript } from "../../src/storage/postgres/script.js";
import { writeStatement } from "../../src/storage/postgres/write-call.js";
import {
  checkDefinitions,
  checkFunction,
  checkStatement,
  type Schema,
  schemaOf,
} from "../support/distribution-rules.js";
import { find, functionsOf, loadParser, names, parse } from "../support/sql-tree.js";

const variables = { schema: "agstate", writer: "w", reader: "r", maintainer: "m" };
const migrations = readdirSync(MIGRATIONS)
  .filter((name) => name.endsWith(".sql"))
  .sort()
  .map((name) => readScript(name, variables));
const citus = readScript("distributed/citus.sql", variables);
const roles = readScript("roles/roles.sql", variables);

/** For several workflows by its nature; never called where tables are distributed. */
const SEVERAL = ["append_commits", "append_pending"];

/** Reads that go over workflows: the catalogue, and for all that are watched at once how many moves they had. */
const OVER_WORKFLOWS = ["workflows", "meta", "moves"];

/** Not asked where tables are distributed. */
const ON_ONE_SERVER = ["metaOnServer"];

let schema: Schema;
beforeAll(async () => {
  await loadParser();
  schema = schemaOf(migrations);
});

const textsIn = (value: unknown): string[] =>
  [...find(value, "A_Const")].flatMap(({ sval }) => (sval as { sval?: string })?.sval ?? []);

/** What citus.sql gives to a function of Citus, by its first argument or by a list of names. */
function distributed() {
  const made = { tables: [] as string[], references: [] as string[] };
  const functions = { whole: [] as string[], helping: [] as string[] };
  for (const select of find(parse(citus), "SelectStmt")) {
    for (const call of find(select.targetList, "FuncCall")) {
      const name = names(call.funcname).at(-1);
      const texts = textsIn(call.args);
      if (name === "create_distributed_table") {
        made.tables.push(texts[0] as string);
        expect(texts.slice(1)).toEqual(
          texts[0] === "workflows" ? ["workflow_id"] : ["workflow_id", "workflows"],
        );
      }
      if (name === "create_reference_table") made.references.push(texts[0] as string);
      if (name !== "create_distributed_function") continue;
      const [list] = [...find(select.whereClause, "A_Expr")].filter(
        ({ kind }) => kind === "AEXPR_IN",
      );
      const listed = textsIn(list?.rexpr);
      if (texts.length === 0) functions.helping.push(...listed);
      else {
        expect(texts).toEqual(["p_workflow", "workflows"]);
        functions.whole.push(...listed);
      }
    }
  }
  return { ...made, ...functions };
}

describe("the schema and its statements, by the rules of distributed tables", () => {
  it("have no key without the workflow, no trigger and no sequence", () => {
    expect([...schema.workflowTables].sort()).toEqual([
      "commits",
      "objects",
      "pending",
      "reflog",
      "refs",
      "watchers",
      "workflows",
    ]);
    expect(checkDefinitions([...migrations, citus, roles], schema)).toEqual([]);
  });

  it("are all distributed by citus.sql", () => {
    const { tables, references, whole, helping } = distributed();
    expect(tables[0]).toBe("workflows");
    expect(new Set(tables)).toEqual(schema.workflowTables);
    expect(new Set(references)).toEqual(schema.otherTables);
    const all = new Map(migrations.flatMap(functionsOf).map((made) => [made.name, made]));
    const byWorkflow = [...all.values()].filter(({ parameters }) => parameters[0] === "p_workflow");
    const expected = byWorkflow.map(({ name }) => name).filter((name) => !SEVERAL.includes(name));
    expect([...whole].sort()).toEqual(expected.sort());
    expect([...whole, ...helping, ...SEVERAL].sort()).toEqual([...all.keys()].sort());
  });

  it("touch, in functions that run where a workflow is, nothing but that workflow", () => {
    const { whole, helping } = distributed();
    const text = [...migrations, citus].join("\n");
    const calls = new Set([...whole, ...helping]);
    for (const name of calls)
      expect([name, checkFunction(text, name, schema, calls)]).toEqual([name, []]);
  });

  it("read one workflow", () => {
    const statements = Object.entries(queries("agstate")).filter(
      ([name]) => ![...OVER_WORKFLOWS, ...ON_ONE_SERVER].includes(name),
    );
    expect(statements.length).toBeGreaterThan(15);
    for (const [name, text] of statements)
      expect([name, checkStatement(text, schema)]).toEqual([name, []]);
  });

  it("write by functions that are distributed", () => {
    const { whole } = distributed();
    for (const text of [writeStatement("agstate"), appendStatement("agstate", "append_commit")]) {
      const [call] = [...find(parse(text), "FuncCall")];
      expect(whole).toContain(names(call?.funcname).at(-1));
      expect([...find(call?.args, "ParamRef")][0]).toMatchObject({ number: 1 });
    }
  });
});

describe("the check", () => {
  const made = "CREATE TABLE t (workflow_id uuid NOT NULL, id int";
  for (const [what, sql] of [
    ["a primary key", `${made}, PRIMARY KEY (id))`],
    ["a primary key of a column", "CREATE TABLE t (workflow_id uuid, id int PRIMARY KEY)"],
    ["a unique constraint", `${made}, UNIQUE (id))`],
    ["one that is added", `${made}); ALTER TABLE t ADD UNIQUE (id)`],
    ["a unique index", `${made}); CREATE UNIQUE INDEX ON t (id)`],
    ["a foreign key", `${made}, FOREIGN KEY (id) REFERENCES t (id))`],
    ["a foreign key of a column", "CREATE TABLE t (workflow_id uuid, id int REFERENCES t (id))"],
    [
      "a foreign key to another table",
      `CREATE TABLE o (id uuid); ${made}, FOREIGN KEY (workflow_id) REFERENCES o (id))`,
    ],
    ["a serial column", "CREATE TABLE t (workflow_id uuid, id bigserial)"],
    ["an identity", "CREATE TABLE t (workflow_id uuid, id int GENERATED ALWAYS AS IDENTITY)"],
    ["a sequence", "CREATE SEQUENCE s"],
    ["a default from a sequence", "CREATE TABLE t (workflow_id uuid, id int DEFAULT nextval('s'))"],
    ["a trigger", "CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()"],
  ] as const) {
    it(`finds ${what}`, () => {
      expect(checkDefinitions([sql], schemaOf([sql]))).toHaveLength(1);
    });
  }

  for (const [what, sql] of [
    ["no filter", "SELECT 1 FROM s.commits AS t"],
    [
      "a filter of several workflows",
      "SELECT 1 FROM s.commits AS t WHERE t.workflow_id = ANY ($1)",
    ],
    ["an alternative", "SELECT 1 FROM s.commits AS t WHERE t.workflow_id = $1 OR t.id = $2"],
    [
      "another table's filter",
      "SELECT 1 FROM s.commits AS t, s.refs AS r WHERE r.workflow_id = $1 AND t.workflow_id = r.workflow_id",
    ],
    [
      "no filter in a query within",
      "SELECT (SELECT count(*) FROM s.refs AS r) FROM generate_series(1, 2)",
    ],
    ["no filter in a CTE", "WITH x AS (SELECT id FROM s.refs) SELECT * FROM x"],
    [
      "no filter in a part of a union",
      "SELECT 1 FROM s.refs AS r WHERE r.workflow_id = $1 UNION ALL SELECT 1 FROM s.commits AS t",
    ],
    ["an update without", "UPDATE s.refs AS t SET seq = 1 WHERE t.name = $1"],
    ["a deletion without", "DELETE FROM s.refs AS t WHERE t.name = $1"],
    ["another workflow_id", "UPDATE s.refs AS t SET workflow_id = $2 WHERE t.workflow_id = $1"],
    [
      "another workflow_id on conflict",
      "INSERT INTO s.refs (workflow_id) VALUES ($1) ON CONFLICT (workflow_id, name) DO UPDATE SET workflow_id = $2",
    ],
    ["an element of an array, set", "UPDATE s.refs AS t SET seq = arr[i] WHERE t.workflow_id = $1"],
    [
      "an element of an array, inserted",
      "INSERT INTO s.refs (workflow_id, seq) VALUES ($1, arr[i])",
    ],
    [
      "a workflow that is an element",
      "INSERT INTO s.refs (workflow_id) SELECT n.k FROM nodes AS n",
    ],
    ["no workflow inserted", "INSERT INTO s.refs (name) VALUES ($1)"],
    ["unnest", "INSERT INTO s.refs (workflow_id, seq) SELECT $1, x FROM unnest($2::int[]) AS x"],
  ] as const) {
    it(`finds ${what} in a statement`, () => {
      expect(checkStatement(sql, schema)).toHaveLength(1);
    });
  }

  it("finds what a function touches besides its workflow", () => {
    const wrong = (body: string, language = "plpgsql") =>
      checkFunction(
        `CREATE FUNCTION s.f(p_workflow uuid) RETURNS int LANGUAGE ${language} AS $$ ${body} $$;`,
        "f",
        schema,
        new Set(["is_object"]),
      );
    expect(wrong("BEGIN PERFORM s.is_object(1, x, y); RETURN 1; END")).toEqual([]);
    expect(wrong("BEGIN PERFORM 1 FROM s.meta; END")).toEqual(["touches meta"]);
    expect(wrong("BEGIN INSERT INTO s.meta VALUES ('a', 'b'); END")).toEqual(["touches meta"]);
    expect(wrong("SELECT 1 FROM s.meta", "sql")).toEqual(["touches meta"]);
    expect(wrong("BEGIN IF s.other() THEN RETURN 1; END IF; END")).toEqual(["calls other"]);
    expect(wrong("BEGIN EXECUTE 'SELECT 1'; END")).toHaveLength(1);
    expect(wrong("DECLARE n int; BEGIN n := (SELECT count(*) FROM s.refs); END")).toHaveLength(1);
    expect(
      wrong("DECLARE n int; BEGIN FOR n IN SELECT 1 FROM s.refs LOOP NULL; END LOOP; END"),
    ).toHaveLength(1);
    expect(checkFunction("SELECT 1", "f", schema, new Set())).toHaveLength(1);
  });

  it("finds append_commits to be for several workflows", () => {
    const text = migrations.join("\n");
    const calls = new Set(["is_object", "notify_watchers"]);
    expect(checkFunction(text, "append_commits", schema, calls).length).toBeGreaterThan(3);
  });
});
