import { join } from "node:path";
import { JsonPlusSerializer } from "@langchain/langgraph-checkpoint";
import Database from "better-sqlite3";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Branch,
  type ErrorCode,
  type GovernancePolicy,
  type JsonValue,
  openStore,
  type Store,
  type Workflow,
} from "../../src/index.js";
import { fromStored } from "../../src/langgraph/values.js";
import { parseStrictJson } from "../../src/objects/strict-json.js";
import { firstDifference } from "../../src/steps/first-difference.js";
import { jsonValues } from "../support/json.js";
import { everythingOf, expectNone, newMarker } from "../support/leaks.js";
import { agstateError, BACKENDS, makeStore } from "../support/stores.js";

const M = newMarker();

interface Ground {
  readonly store: Store;
  readonly workflow: Workflow;
  readonly branch: Branch;
}

const later = (what: unknown) => Promise.resolve(what);
const never = () => new Promise<never>(() => undefined);

/** What raises an error about values that hold the marker. */
const CASES: readonly [
  what: string,
  code: ErrorCode,
  work: (ground: Ground) => Promise<unknown>,
][] = [
  [
    "a value that is not JSON",
    "INVALID_VALUE",
    ({ branch }) => branch.commit({ state: { a: M, b: [M, Number.NaN] } }),
  ],
  [
    "a class",
    "INVALID_VALUE",
    ({ branch }) => branch.commit({ state: { a: M, b: new Map([[M, M]]) } }),
  ],
  [
    "a state that is too large",
    "LIMIT_EXCEEDED",
    ({ branch }) => branch.commit({ state: { a: M.repeat(3000) } }),
  ],
  [
    "a message that is too long",
    "LIMIT_EXCEEDED",
    ({ branch }) => branch.commit({ message: M.repeat(20_000) }),
  ],
  [
    "a reason of two lines",
    "INVALID_VALUE",
    ({ branch }) => branch.commit({ state: 1, reason: `${M}\n${M}` }),
  ],
  [
    "an edit of a value that is no list",
    "INVALID_ARGUMENT",
    ({ branch }) => branch.update([{ op: "append", path: "/text", values: [M] }]),
  ],
  [
    "a path that is not there",
    "PATH_NOT_FOUND",
    ({ workflow }) => workflow.stateAt("canonical", "/text/0"),
  ],
  [
    "a branch that moved meanwhile",
    "REF_CONFLICT",
    async ({ workflow, branch }) => {
      const other = await workflow.branch("a/x");
      await other.commit({ state: { text: M } });
      return branch.commit({ state: { text: `${M}!` }, message: M });
    },
  ],
  [
    "a rule that denies",
    "STEP_DENIED",
    ({ branch }) => branch.step({ name: "rm", input: { text: M } }, () => M),
  ],
  [
    "a rule that asks",
    "APPROVAL_NEEDED",
    ({ branch }) => branch.step({ name: "book", input: { text: M } }, () => M),
  ],
  [
    "a step in doubt",
    "STEP_IN_DOUBT",
    ({ branch }) => branch.step({ name: "pay", input: { text: M }, timeoutMs: 5 }, never),
  ],
  [
    "a step's output that is not JSON",
    "INVALID_VALUE",
    ({ branch }) => branch.step({ name: "pay" }, () => ({ a: M, b: 1n }) as never),
  ],
  ...(["input", "action", "name", "count"] as const).map((changed): (typeof CASES)[number] => [
    `a run whose code has another ${changed}`,
    "STEP_MISMATCH",
    async ({ workflow, branch }) => {
      const spec = { name: "find", action: "write", input: { to: [M, 1] } } as const;
      await workflow
        .run(branch, async (ctx) => {
          await ctx.step(spec, () => M);
          throw new Error("dies");
        })
        .catch(() => undefined);
      const now = {
        input: { ...spec, input: { to: [`${M}?`, 1], more: M } },
        action: { ...spec, action: "execute" as const },
        name: { ...spec, name: "load" },
        count: undefined,
      }[changed];
      return workflow.run(await workflow.branch("a/x"), (ctx) =>
        now === undefined ? later(M) : ctx.step(now, () => M),
      );
    },
  ]),
  [
    "a merge that conflicts",
    "MERGE_CONFLICT",
    async ({ workflow, branch }) => {
      await branch.commit({ state: { text: `${M} a` } });
      await (await workflow.canonical()).commit({ state: { text: `${M} b` } });
      return workflow.promote("a/x");
    },
  ],
  [
    "a subject that is none",
    "INVALID_ARGUMENT",
    ({ workflow }) => workflow.erase({ subject: M.repeat(500), by: "dpo", reason: M } as never),
  ],
];

const RULED: readonly ErrorCode[] = ["STEP_DENIED", "APPROVAL_NEEDED"];
const RULES: GovernancePolicy = {
  rules: [
    { tool: "rm", decision: "deny" },
    { tool: "book", decision: "approve", paths: ["/text"] },
  ],
  default: "allow",
};

describe.each(BACKENDS)("an error of agstate on %s", (backend) => {
  it.each(CASES)("about %s tells no values", async (_, code, work) => {
    const { store } = await makeStore(backend, {
      ...(RULED.includes(code) ? { governance: RULES } : {}),
      limits: { stateMaxBytes: 50_000, messageMaxBytes: 10_000 },
    });
    const workflow = await store.createWorkflow("w", { state: { text: M, [M]: [M] } });
    const branch = await workflow.branch({ agent: "a", branch: "x" });
    const error = await work({ store, workflow, branch }).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toEqual(agstateError(code));
    expectNone(everythingOf(error), [M], "the error");
  });

  it("about a resolver that failed tells it by its name, and keeps it as the cause", async () => {
    const { store } = await makeStore(backend);
    const workflow = await store.createWorkflow("w", { state: { text: "base" } });
    const branch = await workflow.branch({ agent: "a", branch: "x" });
    await branch.commit({ state: { text: `${M} a` } });
    await (await workflow.canonical()).commit({ state: { text: `${M} b` } });
    const merging = workflow.merge(["a/x"], {
      resolve: (values) => {
        throw new RangeError(`cannot choose of ${JSON.stringify(values)}`);
      },
    });
    const error = await merging.catch((thrown: unknown) => thrown as Error & { cause: Error });
    expect(error).toMatchObject({
      code: "RESOLVER_FAILED",
      cause: expect.objectContaining({ message: expect.stringContaining(M) }),
    });
    const { message, stack } = error as Error;
    expectNone(JSON.stringify([message, stack, error]), [M], "the error");
    expect(message).toContain("RangeError");
  });
});

/** Short, as parsers quote a few characters. */
const PART = "zq7Wk";

describe("an error about a text that is no JSON", () => {
  it.each([
    `{"a": ${PART}}`,
    `${PART}`,
    `["${PART}" "${PART}"]`,
    `{"a":"${PART}`,
    `{"a":"${PART}"} ${PART}`,
    `{${PART}:1}`,
    `["${PART}\\q"]`,
    `[-${PART}]`,
    `${"[".repeat(20_000)}"${PART}"${PART}`,
    `["${PART.repeat(2_000_000)}" ${PART}`,
  ])("tells where it is wrong, and a character at most: %#", (text) => {
    let error: unknown;
    try {
      parseStrictJson(text, "the state");
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toEqual(agstateError("INVALID_VALUE"));
    expectNone(everythingOf(error), [PART], "the error");
  });

  it("tells no digits of a number that is none", () => {
    expect(() => parseStrictJson("[4111111111111111.x]", "the state")).toThrow(
      /Invalid number,|Invalid number /,
    );
    expect(() => parseStrictJson("[4111111111111111.x]", "the state")).not.toThrow(/4111/);
  });
});

describe("an error about a stored value of an unknown kind", () => {
  it.each<JsonValue>([["dote", M], [M, 1], M, [[M]]])("tells the kind at most: %#", async (tag) => {
    const reading = fromStored(new JsonPlusSerializer(), { a: { $agstate: tag } });
    const error = await reading.catch((thrown: unknown) => thrown);
    expect(error).toEqual(agstateError("UNSUPPORTED_ENCODING"));
    expectNone(everythingOf(error), [M], "the error");
  });
});

describe("an error of SQLite", () => {
  it("tells nothing that a trigger says", async () => {
    const { store, directory } = await makeStore("sqlite");
    const workflow = await store.createWorkflow("w", { state: { text: M } });
    const db = new Database(join(directory, "store.db"));
    db.exec(
      `CREATE TRIGGER sabotage BEFORE INSERT ON objects BEGIN SELECT RAISE(ABORT, 'bad ' || hex(NEW.body)); END`,
    );
    db.close();
    const writing = (await workflow.canonical()).commit({ message: M, reason: M });
    const error = await writing.catch((thrown: unknown) => thrown);
    expect(error).toEqual(
      agstateError("STORE_UNAVAILABLE", { sqlite: "SQLITE_CONSTRAINT_TRIGGER" }),
    );
    expectNone(everythingOf(error), [M], "the error");
  });
});

describe("a URL of a store of no known kind", () => {
  it.each([`mysql://ann:${M}@h/db`, `postgre:ann:${M}@h`, `redis:${M}`])(
    "tells its kind alone: %#",
    async (url) => {
      const error = await openStore(url).catch((thrown: unknown) => thrown);
      expect(error).toEqual(
        agstateError("INVALID_ARGUMENT", { kind: url.slice(0, url.indexOf(":") + 1) }),
      );
      expectNone(everythingOf(error), [M], "the error");
    },
  );
});

describe("firstDifference", () => {
  it.each<[JsonValue | undefined, JsonValue | undefined, string | undefined]>([
    [{ a: 1, b: [1, { c: 2 }] }, { b: [1, { c: 3 }], a: 1 }, "/b/1/c"],
    [[1, 2], [1, 2, 3], "/2"],
    [{ a: 1 }, { a: 1, "x/y": null }, "/x~1y"],
    [{ b: 1, a: 1 }, { b: 2, a: 2 }, "/a"],
    [1, "1", ""],
    [undefined, null, ""],
    [[], {}, ""],
    [JSON.parse('{"__proto__":1}'), {}, "/__proto__"],
    [{ a: [{}] }, { a: [{}] }, undefined],
  ])("of %j and %j is %j", (a, b, path) => expect(firstDifference(a, b)).toBe(path));

  it("is none for a value and its copy, and the place of what was changed in it", () => {
    fc.assert(
      fc.property(jsonValues(), fc.array(fc.string()), jsonValues(), (value, way, other) => {
        const copy = JSON.parse(JSON.stringify(value)) as JsonValue;
        expect(firstDifference(value, copy)).toBeUndefined();
        const put = (at: JsonValue) =>
          way.reduceRight<JsonValue>((below, key) => Object.fromEntries([[key, below]]), [at, 1]);
        const pointer = ["", ...way, "0"]
          .map((key) => key.replaceAll("~", "~0").replaceAll("/", "~1"))
          .join("/");
        const found = firstDifference(put(value), put(other));
        expect(found === undefined || found.startsWith(pointer)).toBe(true);
        expect(found === undefined).toBe(firstDifference(value, other) === undefined);
      }),
    );
  });
});
