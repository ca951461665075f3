import { constants } from "node:buffer";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type AgstateError, isAgstateError } from "../../src/core/errors.js";
import { parseStrictJson } from "../../src/objects/strict-json.js";
import { jsonValues } from "../support/json.js";

function refusal(input: string | Uint8Array, line?: number): AgstateError {
  try {
    parseStrictJson(input, "the file", line === undefined ? {} : { line });
  } catch (error) {
    if (isAgstateError(error)) return error;
    throw error;
  }
  throw new Error("it was accepted");
}

describe("parseStrictJson, numbers", () => {
  it.each([
    ['{"a":[1,{"id":235191684988928001}]}', "/a/1/id", "235191684988928001"],
    ["[0,-9007199254740993]", "/1", "-9007199254740993"],
    ['{"a/b":{"c~d":1e400}}', "/a~1b/c~0d", "1e400"],
    ["-1E+999", "", "-1E+999"],
    ['["x",1e-400]', "/1", "1e-400"],
    ['{"x":{},"y":9007199254740993}', "/y", "9007199254740993"],
  ])("refuses in %s what a double does not hold", (text, path, literal) => {
    const error = refusal(text);
    expect(error.code).toBe("INVALID_VALUE");
    expect(error.details).toEqual({ path, literal });
    expect(error.message).toContain(literal);
    expect(error.message).toContain("string");
  });

  it("names a literal of any length shortly", () => {
    const error = refusal(`[${"9".repeat(100_000)}]`);
    expect(error.code).toBe("INVALID_VALUE");
    expect(error.message.length).toBeLessThan(300);
  });

  it.each([
    "[9007199254740991,9007199254740992,-9007199254740992,100000000000000000000]",
    "[0.11605553800109192,1.0,1e2,1e-320,-0,0e-400,0.000e5,123456789012345678.5]",
    '{"text":"235191684988928001, 1e400","1e400":[{"9007199254740993":"\\\\"}]}',
  ])("accepts what is kept or is no number: %s", (text) => {
    expect(parseStrictJson(text, "the file")).toEqual(JSON.parse(text));
  });

  it("accepts whatever JSON.stringify writes", () => {
    fc.assert(
      fc.property(jsonValues({ maxDepth: 5 }), fc.boolean(), (value, pretty) => {
        const text = JSON.stringify(value, null, pretty ? 2 : 0);
        expect(parseStrictJson(text, "the file")).toEqual(JSON.parse(text));
      }),
      { numRuns: 500 },
    );
  });

  it("accepts an integer exactly when its digits come back", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 62n), max: 2n ** 62n }), (integer) => {
        const text = JSON.stringify({ list: [0, `${integer}`] }).replace(/"(-?\d+)"/, "$1");
        const number = Number(integer);
        if (BigInt(number) === integer || String(number) === String(integer)) {
          expect(parseStrictJson(text, "the file")).toEqual({ list: [0, number] });
        } else {
          expect(refusal(text).details).toEqual({ path: "/list/1", literal: String(integer) });
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe("parseStrictJson, keys", () => {
  it.each([
    ['{"a":1,"a":2}', "/a"],
    ['{"a":1,"b":{"c":[],"\\u0063":[]}}', "/b/c"],
    ['[{"a":{}},{"a":{},"a":[]}]', "/1/a"],
    ['{"__proto__":1,"__proto__":1}', "/__proto__"],
    ['{"\\"":1,"x":"\\\\","\\"":1}', '/"'],
  ])("refuses in %s the key that stands twice", (text, path) => {
    const error = refusal(text);
    expect(error.code).toBe("INVALID_VALUE");
    expect(error.details).toMatchObject({ path });
    expect(error.message).toContain("twice");
  });

  it("refuses an object exactly when a key repeats", () => {
    const key = fc.oneof(fc.constantFrom("a", "b", '"', "\\", "é", "{", ","), fc.string());
    fc.assert(
      fc.property(fc.array(fc.tuple(key, jsonValues({ maxDepth: 1 }))), (entries) => {
        const members = entries.map(([k, v]) => `${JSON.stringify(k)} :${JSON.stringify(v)}`);
        const text = `[{${members.join(" , ")}}]`;
        if (new Set(entries.map(([k]) => k)).size === entries.length) {
          expect(parseStrictJson(text, "the file")).toEqual(JSON.parse(text));
        } else {
          expect(refusal(text).message).toContain("twice");
        }
      }),
      { numRuns: 500 },
    );
  });

  it("keeps __proto__ as an ordinary key", () => {
    const value = parseStrictJson('{"__proto__":{"x":1},"b":2}', "the file") as object;
    expect(Object.keys(value)).toEqual(["__proto__", "b"]);
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
  });
});

describe("parseStrictJson, syntax", () => {
  it.each([
    ['{"a":}', 1, 6],
    ['{"a": 1\n,\n  "b" 2}', 3, 7],
    ["[1,2", 1, 5],
    ["[01]", 1, 3],
    ['"abc', 1, 5],
    ['["a\u0001b"]', 1, 4],
    ["[1] x", 1, 5],
    ["nul", 1, 1],
  ])("tells the line and the column in %j", (text, line, column) => {
    const error = refusal(text);
    expect(error.code).toBe("INVALID_VALUE");
    expect(error.details).toEqual({ line, column });
    expect(error.message).toContain(`line ${line}, column ${column}`);
    expect(error.message).not.toMatch(/\p{Cc}/u);
  });

  it("counts from the line that it is given", () => {
    expect(refusal("[\n1 2]", 40).details).toEqual({ line: 41, column: 3 });
  });

  it.each(["", " \n\t", "\ufeff"])("says of %j that it is empty", (text) => {
    expect(refusal(text)).toMatchObject({ code: "INVALID_VALUE" });
    expect(refusal(text).message).toContain("empty");
  });

  it("gives the engine's own words where the text is too deep or too long to look for the place", () => {
    for (const text of ["[".repeat(100_000), `["${"x".repeat(9 * 1024 * 1024)}"`]) {
      const error = refusal(text);
      expect(error).toMatchObject({ code: "INVALID_VALUE", details: {} });
      expect(error.message).toContain("is not JSON: ");
    }
  });
});

describe("parseStrictJson, sizes and bytes", () => {
  it("accepts 256 levels and refuses more, at any depth", () => {
    const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth);
    expect(() => parseStrictJson(nested(256), "the file")).not.toThrow();
    for (const depth of [257, 100_000]) {
      expect(refusal(nested(depth))).toMatchObject({
        code: "LIMIT_EXCEEDED",
        details: { limit: 256 },
      });
    }
    expect(refusal(`${'{"a":'.repeat(300)}1${"}".repeat(300)}`).code).toBe("LIMIT_EXCEEDED");
  });

  it("refuses bytes beyond the longest string", () => {
    const size = constants.MAX_STRING_LENGTH + 1;
    expect(refusal(Buffer.allocUnsafeSlow(size))).toMatchObject({
      code: "LIMIT_EXCEEDED",
      details: { size, limit: constants.MAX_STRING_LENGTH },
    });
  });

  it("reads UTF-8 bytes, with or without a byte order mark, and no other encoding", () => {
    const bytes = Buffer.from('{"a":"ü🌦️"}');
    expect(parseStrictJson(bytes, "the file")).toEqual({ a: "ü🌦️" });
    expect(parseStrictJson(new Uint8Array([0xef, 0xbb, 0xbf, ...bytes]), "the file")).toEqual({
      a: "ü🌦️",
    });
    for (const wrong of [Buffer.from('{"a":"ü"}', "latin1"), Buffer.from("\ufeff{}", "utf16le")]) {
      expect(refusal(wrong).message).toContain("UTF-8");
    }
  });
});
