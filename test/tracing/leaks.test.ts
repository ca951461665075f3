import { join } from "node:path";
import { emptyCheckpoint } from "@langchain/langgraph-checkpoint";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import type { JsonValue, OpenStoreOptions, Store, Workflow } from "../../src/index.js";
import { AgstateSaver } from "../../src/langgraph/index.js";
import { type Exported, exportAll } from "../support/collector.js";
import { expectNone, newMarker } from "../support/leaks.js";
import { schemaOf, withClient } from "../support/postgres.js";
import { all, BACKENDS, type Backend, makeStore } from "../support/stores.js";

const M = newMarker();

/** What the parts of a store's work take and give. */
interface Payloads {
  /** Of the state, messages, reasons and checkpoints, which no span ever holds. */
  readonly state: JsonValue;
  readonly text: string;
  /** Of steps, which spans hold where that is allowed. */
  readonly input: JsonValue;
  readonly output: JsonValue;
  readonly errors: readonly unknown[];
}

const failed = (work: Promise<unknown>) =>
  work.then(
    () => expect.fail("it should have failed"),
    (error: unknown) => error,
  );

/** Does all that a store tells of, well and badly. */
async function doEverything(store: Store, given: Payloads): Promise<Workflow> {
  const { state, text, input, output, errors } = given;
  const note = { message: text, reason: text };
  const workflow = await store.createWorkflow("w", { state: { base: state, n: 0 } });
  const branch = (name: string) => workflow.branch({ agent: "a", branch: name });
  const canonical = await workflow.canonical();

  // Commits: alone, in groups, that cannot be, and that lost.
  const one = await branch("one");
  await one.commit({ state: { base: state, [text]: [text, { text }], n: 1 }, ...note });
  await one.update([
    { op: "set", path: "/text", value: text },
    { op: "append", path: `/${text}`, values: [state] },
  ]);
  await failed(one.commit({ state: { text, n: Number.NaN }, ...note }));
  await failed(one.update([{ op: "append", path: "/text", values: [text] }]));
  const many = await Promise.all(["b1", "b2", "b3"].map(branch));
  await Promise.all(many.map((each) => each.commit({ state: { text, n: 2 }, ...note })));
  const late = await workflow.branch("a/b1");
  await many[0]!.commit({ state: { text: `${text}!` }, ...note });
  await failed(late.commit({ state: { text: `${text}?` }, ...note }));

  // Steps: done, failed in all ways, refused, in doubt.
  for (const action of ["read", "inference", "write", "execute"] as const) {
    await one.step({ name: action, action, input, memoize: true }, () => output);
  }
  for (const error of errors) {
    const spec = { name: "fails", input, attempts: 2 };
    await failed(one.step(spec, () => Promise.reject(error)));
  }
  await failed(one.step({ name: "bad", input }, () => ({ output, n: 1n }) as never));
  await failed(one.step({ name: "denied", input }, () => output));
  await failed(one.step({ name: "asks", input }, () => output));
  const [review] = await workflow.reviews();
  await review!.discard({ actor: "me", reason: text });
  const two = await branch("two");
  const never = () => new Promise<never>(() => undefined);
  await failed(two.step({ name: "hangs", input, timeoutMs: 5 }, never));
  await two.sealStep(1, { error: { name: "Error", message: text } });

  // Runs: that die, go on, go on with other code, and drift.
  await branch("three");
  const run = async (end: () => unknown, now: JsonValue = input) =>
    workflow.run(await workflow.branch("a/three"), async (ctx) => {
      await ctx.step({ name: "look", action: "read" }, () => output);
      await ctx.all({ part: (inner) => inner.step({ name: "inner", input: now }, () => output) });
      await ctx.update([{ op: "set", path: "/run", value: state }]);
      return end();
    });
  await failed(
    run(() => {
      throw errors[0];
    }),
  );
  await run(() => output);
  await run(() => output, { other: input });
  const other = async (name: string, now: JsonValue) =>
    workflow.run(await branch("four"), async (ctx) => {
      await ctx.step({ name, input: now }, () => output);
      throw errors[0];
    });
  await failed(other("first", input));
  await failed(other("first", [input]));
  await failed(other("else", input));

  // Merges: with conflicts, settled, stored, failing; picks.
  await canonical.commit({ state: { base: state, text: `${text} c`, n: 3 }, ...note });
  await workflow.merge(["a/b1"], { message: text });
  await failed(
    workflow.merge(["a/b1"], {
      resolve: (values) => {
        throw new Error(`of ${JSON.stringify(values)} and ${text}`);
      },
    }),
  );
  await workflow.merge(["a/b2"], { onConflict: "store" });
  await failed(workflow.promote("a/b3"));
  await workflow.merge(["a/b1"], { resolve: () => ({ value: { text } }), message: text });
  const picked = await workflow.cherryPick("a/b3", { onto: "a/b2" });
  expect(picked.status).toBeDefined();
  await workflow.revert("a/b2", { onto: "a/b2" });

  // LangGraph's checkpoints.
  const saver = new AgstateSaver(store);
  const at = { configurable: { thread_id: "t", checkpoint_ns: "" } };
  const checkpoint = {
    ...emptyCheckpoint(),
    channel_values: { state, text },
    channel_versions: { state: 1, text: 1 },
  };
  const put = await saver.put(
    at,
    checkpoint,
    { source: "loop", step: 0, parents: {}, text } as never,
    { state: 1, text: 1 },
  );
  await saver.putWrites(
    put,
    [
      ["text", text],
      ["__error__", new Error(text)],
    ],
    "task",
  );
  await all(saver.list(at));
  await failed(
    saver.put(
      at,
      { ...checkpoint, channel_values: { text: () => text } },
      { source: "loop", step: 1, parents: {} },
      { text: 2 },
    ),
  );

  // A hand-off over something that has changed, and a checker that fails.
  const heir = await branch("heir");
  const checkers = {
    doc: () => text,
    bad: () => {
      throw new Error(text);
    },
  };
  const id = text.replace(/\s/g, "-");
  await heir.handoff({
    summary: { goal: text, done: [text] },
    note: text,
    resources: [
      { type: "doc", id, version: "1" },
      { type: "bad", id, version: id },
    ],
    fingerprints: { model: text, prompts: { [id]: text } },
  });
  const stale = await heir.resume({ checkers, retries: 0, fingerprints: { model: state } });
  await (await workflow.review(stale.review?.id as string)).approve({ actor: "m", reason: id });
  await heir.resume({ checkers, retries: 0, fingerprints: { model: state } });
  await failed(heir.handoff({ summary: { [text]: text } as never }));

  // Maintenance, and what is told of a reason.
  await workflow.tag("t1", "canonical", { reason: text });
  const hold = await workflow.hold("t1", { reason: text });
  await workflow.releaseHold(hold.name, { reason: text });
  await workflow.reset("a/b3", "a/b3~1", { reason: text });
  await failed(workflow.erase({ paths: ["/state/base"], by: "dpo", reason: text }));
  await workflow.erase({ paths: ["/state/base"], by: "dpo", reason: "request 17" });
  await workflow.applyRetention({ policy: "P30D" });
  await workflow.gc({ graceMs: 0 });
  await failed(workflow.stateAt("canonical", "/none"));
  return workflow;
}

/** Makes the database refuse commits in words that hold the row. */
async function sabotage(backend: Backend, url: string, directory: string): Promise<void> {
  if (backend === "sqlite") {
    const db = new Database(join(directory, "store.db"));
    db.exec(
      "CREATE TRIGGER no BEFORE INSERT ON objects BEGIN SELECT RAISE(ABORT, 'bad ' || hex(NEW.body)); END",
    );
    db.close();
  } else if (backend === "postgres") {
    const schema = schemaOf(url);
    await withClient((client) =>
      client.query(
        `CREATE FUNCTION ${schema}.no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
           RAISE EXCEPTION 'bad %', to_jsonb(NEW) USING DETAIL = to_jsonb(NEW)::text; END $$;
         CREATE TRIGGER no BEFORE INSERT ON ${schema}.commits FOR EACH ROW EXECUTE FUNCTION ${schema}.no()`,
      ),
    );
  }
}

async function tell(
  backend: Backend,
  given: Payloads,
  tracing?: OpenStoreOptions["tracing"],
): Promise<Exported> {
  const exported = await exportAll();
  const { store, url, directory } = await makeStore(backend, {
    tracing,
    governance: {
      rules: [
        {
          tool: "denied",
          decision: "deny",
          reason: tracing === undefined ? given.text : "by rule",
        },
        { tool: "asks", decision: "approve" },
      ],
      default: "allow",
    },
  });
  const workflow = await doEverything(store, given);
  if (backend !== "memory") {
    await sabotage(backend, url, directory);
    const branch = await workflow.branch("a/one");
    await failed(
      branch.commit({ state: { text: given.text }, message: given.text, reason: given.text }),
    );
    await failed(branch.step({ name: "pay", input: given.input }, () => given.output));
  }
  return exported();
}

function expectNothingOf(marker: string, { requests, held }: Exported): void {
  for (const bytes of requests) expectNone(bytes, [marker], "a request");
  expectNone(held, [marker], "the SDK");
}

/** What was sent of work that is told of, so that silence does not pass for discretion. */
const TOLD = [
  ...["execute_step", "write_checkpoint", "run", "resume", "merge", "gc", "retention", "erase"],
  ...[
    "validate_freshness",
    "step.name",
    "checkpoint.commit",
    "error.type",
    "agstate.merge.conflicts",
  ],
];

const errorsWith = (text: string): unknown[] => [
  Object.assign(new RangeError(text, { cause: new Error(text) }), { name: text, code: text }),
  Object.assign(new Error(text), { constructor: { name: text } }),
  new AggregateError([new Error(text)], text),
  new DOMException(text, text),
  text,
  { message: text, toString: () => text },
];

describe.each(BACKENDS)("what is exported of a store on %s", (backend) => {
  it("holds no payload", async () => {
    const exported = await tell(backend, {
      state: { [M]: [M, { deep: [`${M} and more`] }] },
      text: M,
      input: { [M]: [M], to: { text: `to ${M}` } },
      output: [{ [M]: M }, M],
      errors: errorsWith(M),
    });
    expect(TOLD.filter((name) => !exported.names.has(name))).toEqual([]);
    expectNothingOf(M, exported);
  });

  it("holds payloads of steps that are allowed, without what stands below a secret's key or looks like a secret", async () => {
    const shown = newMarker();
    const secrets = {
      apiKey: M,
      "x-custom": [M, { deep: M }],
      list: [{ db_password: M }, `Bearer ${M}`],
    };
    const exported = await tell(
      backend,
      {
        state: { [M]: [M] },
        text: M,
        input: { shown, ...secrets, arguments: JSON.stringify(secrets) },
        output: { shown, ...secrets },
        errors: errorsWith(`${shown}: GET https://ann:${M}@h/?api_key=${M} gave {"token":"${M}"}`),
      },
      { payloads: { keys: ["x custom"] } },
    );
    expect(exported.held).toContain(shown);
    expect(() => expectNothingOf(shown, exported)).toThrow();
    expectNothingOf(M, exported);
  });
});
