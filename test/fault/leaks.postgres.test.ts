import { describe, expect, it } from "vitest";
import {
  diagnoseStore,
  isAgstateError,
  openStore,
  type Store,
  type Workflow,
} from "../../src/index.js";
import { everythingOf, expectNone, newMarker } from "../support/leaks.js";
import { schemaOf, schemaPlace, serverUrl, withClient } from "../support/postgres.js";
import { withStore } from "../support/writers.js";

const M = newMarker();

/** Each puts the marker into parameters of statements: states, messages, reasons, records of steps, traces, pending rows. */
const WRITES: Readonly<Record<string, (workflow: Workflow, store: Store) => Promise<unknown>>> = {
  "a commit": async (workflow) =>
    (await workflow.branch("a/one")).commit({ state: { text: M, [M]: 1 }, message: M, reason: M }),
  "a group of commits": async (workflow) => {
    const branches = await Promise.all([1, 2, 3].map((n) => workflow.branch(`a/b${n}`)));
    return failed(
      branches.map((branch) => branch.commit({ state: { text: M }, message: M, reason: M })),
    );
  },
  "a large state": async (workflow) =>
    (await workflow.branch("a/one")).commit({ state: { list: Array(200).fill(`${M} of many`) } }),
  "a step": async (workflow) =>
    (await workflow.branch("a/one")).step(
      { name: "pay", action: "write", input: { text: M } },
      () => M,
    ),
  "a new branch": (workflow) => workflow.branch({ agent: "a", branch: "new", reason: M } as never),
  "a tag": (workflow) => workflow.tag("t1", "canonical", { reason: M }),
  "a new workflow": (_, store) => store.createWorkflow("w2", { state: { text: M } }),
};

/** The reason of what failed in a group. */
async function failed(all: readonly Promise<unknown>[]): Promise<unknown> {
  const settled = await Promise.allSettled(all);
  const reasons = settled.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
  if (reasons.length > 0) throw new AggregateError(reasons);
  return undefined;
}

/** A store with something in it that was then made to fail, and what its writes say. */
async function errorsOf(url: string, sabotage: (schema: string) => string): Promise<unknown[]> {
  await withStore(url, async (store) => {
    const workflow = await store.createWorkflow("w", { state: { text: M } });
    for (const name of ["one", "b1", "b2", "b3"])
      await workflow.branch({ agent: "a", branch: name });
  });
  const store = await openStore(url, { limits: { busyTimeoutMs: 100 } });
  try {
    const workflow = await store.workflow("w");
    await withClient((client) => client.query(sabotage(schemaOf(url))));
    const errors: unknown[] = [];
    for (const [what, write] of Object.entries(WRITES)) {
      const error = await write(workflow, store).then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      expect(error, what).toBeDefined();
      expectNone(everythingOf(error), [M], what);
      errors.push(...(error instanceof AggregateError ? error.errors : [error]));
    }
    return errors;
  } finally {
    await store.close();
  }
}

/** Makes each function of the schema say all that it is given, in all that an error can have. */
const saysAll = (schema: string, code: string) => `DO $do$
  DECLARE f record; given text; head text;
  BEGIN
    FOR f IN SELECT p.oid, pg_get_functiondef(p.oid) AS def, p.pronargs AS n, l.lanname
        FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang
        WHERE p.pronamespace = '${schema.replaceAll("'", "''")}'::regnamespace AND p.prokind = 'f' LOOP
      SELECT string_agg(format('coalesce($%s::text, '''')', i), ' || ')
        INTO given FROM generate_series(1, f.n) AS i;
      head := replace(split_part(f.def, 'AS $function$', 1), 'LANGUAGE sql', 'LANGUAGE plpgsql');
      EXECUTE head || 'AS $function$ BEGIN RAISE EXCEPTION ''bad %'', ' || given
        || ' USING ERRCODE = ''${code}'', DETAIL = ' || given || ', HINT = ' || given
        || ', COLUMN = ' || given || ', CONSTRAINT = ' || given || ', DATATYPE = ' || given
        || ', TABLE = ' || given || ', SCHEMA = ' || given || '; END $function$';
    END LOOP;
  END $do$`;

const onEach = (schema: string, body: string) => `
  CREATE FUNCTION ${schema}.sabotage() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${body} RETURN NEW; END $$;
  ${["commits", "reflog"]
    .map(
      (table) =>
        `CREATE TRIGGER sabotage BEFORE INSERT OR UPDATE ON ${schema}.${table} FOR EACH ROW EXECUTE FUNCTION ${schema}.sabotage();`,
    )
    .join("\n")}`;

/** A row that is written, with all that was given for it. */
const ROW = "to_jsonb(NEW)::text";
const REASON = "coalesce(to_jsonb(NEW)->>'log_reason', to_jsonb(NEW)->>'reason', 'none')";

describe("an error of PostgreSQL", () => {
  it.each(["P0001", "42501", "25006", "57014", "08006", "XX001", "23505", "40001", "53100"])(
    "that functions of the schema raise as %s tells nothing that they were given",
    async (code) => {
      const errors = await errorsOf(`${schemaPlace()}&pool_max=3`, (schema) =>
        saysAll(schema, code),
      );
      expect(errors.every((error) => isAgstateError(error) && error.details.code === code)).toBe(
        true,
      );
    },
  );

  it("that tells a row which breaks a constraint tells its name alone", async () => {
    const errors = await errorsOf(schemaPlace(), (schema) =>
      ["commits", "objects", "refs"]
        .map(
          (table) =>
            `ALTER TABLE ${schema}.${table} ADD CONSTRAINT never CHECK (workflow_id IS NULL) NOT VALID;`,
        )
        .join(""),
    );
    for (const error of errors) {
      expect(error).toMatchObject({
        code: "STORE_UNAVAILABLE",
        message: expect.stringMatching(
          /23514: check violation by constraint never of table (commits|objects|refs)/,
        ),
        cause: {
          name: "PostgresError",
          code: "23514",
          constraint: "never",
          routine: "ExecConstraints",
        },
      });
    }
  });

  it.each([
    ["a number that is none", "22P02", `PERFORM (${ROW})::int;`],
    ["JSON that is none", "22P02", `PERFORM (${REASON} || '{')::jsonb;`],
    ["a date that is none", "22007", `PERFORM (${ROW})::timestamptz;`],
    ["SQL that is none", "42601", `EXECUTE ${ROW};`],
  ])("that quotes %s says its kind alone", async (_, code, body) => {
    const errors = await errorsOf(schemaPlace(), (schema) => onEach(schema, body));
    for (const error of errors) expect(error).toMatchObject({ cause: { code } });
  });

  it("of a statement that took too long tells no parameters, where the server adds them", async () => {
    const url = new URL(schemaPlace());
    url.searchParams.set("statement_timeout_ms", "300");
    url.searchParams.set(
      "options",
      "-c log_parameter_max_length_on_error=-1 -c log_parameter_max_length=-1",
    );
    const errors = await errorsOf(url.toString(), (schema) =>
      onEach(schema, "PERFORM pg_sleep(5);"),
    );
    for (const error of errors) {
      expect(error).toMatchObject({
        code: "STORE_BUSY",
        message: expect.stringContaining("statement timeout"),
      });
    }
  });
});

describe("the password of a store's URL", () => {
  const withPassword = (parts: Partial<URL>, parameters: Record<string, string> = {}) => {
    const url = Object.assign(new URL(serverUrl()), { password: M, ...parts });
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
    return url.toString();
  };
  const wrong: [string, string][] = [
    ["that is wrong", withPassword({})],
    ["of a user who is none", withPassword({ username: "nobody" })],
    ["for a database that is none", withPassword({ pathname: "/none" })],
    ["for a server that is none", withPassword({ port: "1" })],
    ["for a host that is none", withPassword({ hostname: "no.invalid" })],
    ["beside TLS that is refused", withPassword({}, { sslmode: "verify-full" })],
    ["beside a limit that is none", withPassword({}, { pool_max: "many" })],
    ["beside a schema that is none", withPassword({}, { schema: "pg_x" })],
    ["in the query", `${serverUrl().replace(/:[^:@]*@/, "@")}?password=${M}`],
    ["beside a file that is not there", withPassword({}, { sslrootcert: "/none" })],
    ["in a port", `postgres://ann:5432@${M}:p@h:x/db`],
    ["in a URL that is none", `postgres://ann:${M}@h:99999/db`],
    ["with an escape that is none", `postgres://ann:${M}%zz@127.0.0.1:1/db`],
    ["in a URL of a kind that is unknown", `postgre://ann:${M}@h/db`],
    ["in a URL of MySQL", `mysql://ann:${M}@h/db`],
  ];
  it.each(wrong)("%s is in no error, nor in what doctor says", async (_, url) => {
    const limits = { busyTimeoutMs: 200 };
    const error = await openStore(url, { limits }).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(isAgstateError(error)).toBe(true);
    expectNone(everythingOf(error), [M], "the error");
    const said = await diagnoseStore(url).catch((thrown: unknown) => everythingOf(thrown));
    expectNone(JSON.stringify(said), [M], "doctor");
  });
});
