import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { JsonValue } from "../../src/index.js";
import {
  checkFingerprintRecord,
  driftBetween,
  type Fingerprints,
  recordFingerprints,
} from "../../src/staleness/fingerprints.js";
import { jsonValues } from "../support/json.js";
import { usually } from "../support/runs.js";
import { agstateError } from "../support/stores.js";

const drift = (recorded: Fingerprints | null, now: Fingerprints | null) =>
  driftBetween(
    recorded && recordFingerprints(recorded),
    now && checkFingerprintRecord(JSON.parse(JSON.stringify(recordFingerprints(now)))),
  );

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

const names = fc.oneof(
  fc.constantFrom("__proto__", "constructor", "search", "10", "9"),
  fc.stringMatching(/^[a-zà-ü/~]{1,8}$/),
);

const fingerprints: fc.Arbitrary<Fingerprints> = fc.record(
  {
    tools: fc.uniqueArray(fc.record({ name: names, schema: jsonValues({ maxDepth: 2 }) }), {
      selector: ({ name }) => name,
      maxLength: 5,
    }),
    prompts: fc
      .uniqueArray(fc.tuple(names, fc.string({ unit: "grapheme" })), {
        selector: ([name]) => name,
        maxLength: 5,
      })
      .map((entries) => Object.fromEntries(entries)),
    model: jsonValues({ maxDepth: 2 }),
    code: fc.stringMatching(/^[0-9a-f]{0,8}$/),
  },
  { requiredKeys: [] },
);

/** The same value with its keys in another order. */
function turned(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(turned);
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, member]) => [key, turned(member)]),
  );
}

describe("fingerprints", () => {
  it("keep values with the SHA-256 of their canonical JSON", () => {
    const record = recordFingerprints({
      tools: [{ name: "search", schema: { b: 1, a: [2] } }, { name: "now" }],
      prompts: { system: "Be kind." },
      model: { name: "m", temperature: 0 },
      code: "abc123",
    });
    expect(record).toEqual({
      tools: {
        search: { digest: sha256('{"a":[2],"b":1}'), value: { a: [2], b: 1 } },
        now: { digest: sha256("null"), value: null },
      },
      prompts: { system: { digest: sha256('"Be kind."'), value: "Be kind." } },
      model: {
        digest: sha256('{"name":"m","temperature":0}'),
        value: { name: "m", temperature: 0 },
      },
      code: { digest: sha256('"abc123"'), value: "abc123" },
    });
    expect(recordFingerprints({})).toEqual({});
  });

  it("differ in nothing but what differs, whatever the order of keys and tools", () => {
    fc.assert(
      fc.property(fingerprints, (given) => {
        const again = {
          ...(turned(given) as Fingerprints),
          ...(given.tools && { tools: [...given.tools].reverse() }),
        };
        expect(drift(given, again)).toEqual([]);
      }),
      { numRuns: usually(300, 10_000) },
    );
  });

  it("tell each thing that is not as it was, and no other", () => {
    fc.assert(
      fc.property(fingerprints, fc.option(fingerprints), (recorded, now) => {
        const expected: string[] = [];
        const compare = (
          kind: string,
          name: string | null,
          a: unknown,
          b: unknown,
          told: boolean,
        ) => {
          if (a === undefined && b === undefined) return;
          if (a === undefined) expected.push(`${kind} ${name} added`);
          else if (b === undefined) expected.push(`${kind} ${name} ${told ? "removed" : "untold"}`);
          else if (JSON.stringify(sorted(a)) !== JSON.stringify(sorted(b)))
            expected.push(`${kind} ${name} changed`);
        };
        const schemas = (given: Fingerprints | null) =>
          given?.tools && new Map(given.tools.map(({ name, schema }) => [name, schema]));
        const texts = (given: Fingerprints | null) =>
          given?.prompts && new Map(Object.entries(given.prompts));
        for (const [kind, listOf] of [
          ["tool", schemas],
          ["prompt", texts],
        ] as const) {
          const before = listOf(recorded) as Map<string, unknown> | undefined;
          const after = listOf(now) as Map<string, unknown> | undefined;
          if (before === undefined) continue;
          for (const name of new Set([...before.keys(), ...(after?.keys() ?? [])])) {
            compare(kind, name, before.get(name), after?.get(name), after !== undefined);
          }
        }
        for (const kind of ["model", "code"] as const) {
          if (recorded[kind] !== undefined) compare(kind, null, recorded[kind], now?.[kind], false);
        }
        const told = drift(recorded, now).map(
          ({ kind, name, change }) => `${kind} ${name} ${change}`,
        );
        expect(told.sort()).toEqual(expected.sort());
      }),
      { numRuns: usually(500, 20_000) },
    );
  });

  it("tell what was and what is", () => {
    expect(drift({ model: "a", code: "1" }, { model: "b" })).toEqual([
      { kind: "model", name: null, change: "changed", recorded: "a", now: "b" },
      { kind: "code", name: null, change: "untold", recorded: "1" },
    ]);
    expect(drift({ tools: [{ name: "a" }] }, { tools: [{ name: "b", schema: 1 }] })).toEqual([
      { kind: "tool", name: "a", change: "removed", recorded: null },
      { kind: "tool", name: "b", change: "added", now: 1 },
    ]);
    expect(drift(null, { model: "b" })).toEqual([]);
  });

  const REFUSED: [given: unknown, code: "INVALID_VALUE" | "LIMIT_EXCEEDED"][] = [
    [null, "INVALID_VALUE"],
    [{ tool: [] }, "INVALID_VALUE"],
    [{ tools: {} }, "INVALID_VALUE"],
    [{ tools: [{}] }, "INVALID_VALUE"],
    [{ tools: new Array(1) }, "INVALID_VALUE"],
    [{ tools: [{ name: "" }] }, "INVALID_VALUE"],
    [{ tools: [{ name: "a\nb" }] }, "INVALID_VALUE"],
    [{ tools: [{ name: "a", description: "d" }] }, "INVALID_VALUE"],
    [{ tools: [{ name: "__proto__" }, { name: "__proto__" }] }, "INVALID_VALUE"],
    [{ tools: [{ name: "a", schema: () => 1 }] }, "INVALID_VALUE"],
    [{ prompts: { a: 1 } }, "INVALID_VALUE"],
    [{ prompts: { "": "p" } }, "INVALID_VALUE"],
    [{ model: Number.NaN }, "INVALID_VALUE"],
    [{ code: 1 }, "INVALID_VALUE"],
    [{ code: "a\n" }, "INVALID_VALUE"],
    [{ prompts: { a: "p".repeat(17 * 1024 * 1024) } }, "LIMIT_EXCEEDED"],
    [{ tools: Array.from({ length: 10_001 }, (_, i) => ({ name: `t${i}` })) }, "LIMIT_EXCEEDED"],
  ];
  it("are refused where they are not what they should be", () => {
    for (const [given, code] of REFUSED) {
      expect(() => recordFingerprints(given as Fingerprints)).toThrow(agstateError(code));
    }
    const one = { digest: sha256("1"), value: 1 };
    expect(checkFingerprintRecord({ model: one, tools: { a: one } })).toEqual({
      model: one,
      tools: { a: one },
    });
    for (const given of [null, [], { model: 1 }, { model: { digest: "x", value: 1 } }]) {
      expect(() => checkFingerprintRecord(given)).toThrow(agstateError("INVALID_VALUE"));
    }
    for (const given of [
      { tools: [one] },
      { tools: { a: 1 } },
      { model: { digest: one.digest } },
    ]) {
      expect(() => checkFingerprintRecord(given)).toThrow(agstateError("INVALID_VALUE"));
    }
    expect(() => checkFingerprintRecord({ more: one })).toThrow(agstateError("INVALID_VALUE"));
  });
});

function sorted(value: unknown): JsonValue {
  if (typeof value !== "object" || value === null) return value as JsonValue;
  if (Array.isArray(value)) return value.map(sorted);
  // Pairs, as a key that looks like a number goes before others in an object.
  const pairs = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return { pairs: pairs.map(([key, member]) => [key, sorted(member)]) };
}
