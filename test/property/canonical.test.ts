import fc from "fast-check";
import stringify from "fast-json-stable-stringify";
import { expect, it } from "vitest";
import type { JsonValue } from "../../src/core/json.js";
import { canonicalText } from "../../src/objects/canonical.js";
import { hashObject, hasId } from "../../src/objects/hash.js";
import { normalize } from "../../src/objects/normalize.js";

/** Keys that JavaScript keeps in an order of its own, that sort in surprising ways, or are no ordinary names. */
const KEYS = [
  "b",
  "a",
  "B",
  "",
  "10",
  "9",
  "1",
  "01",
  "-1",
  "__proto__",
  "é",
  "𝒟",
  "\uffff",
  "toJSON",
];

const { value } = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { depthSize: "medium" },
    fc.oneof(fc.string({ unit: "grapheme" }), fc.double({ noNaN: true, noDefaultInfinity: true })),
    fc.constantFrom(null, true, false, 0, -0, 1e21, 1e-7, '"\\\u0000\u2028'),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(fc.constantFrom(...KEYS), tie("value"), { maxKeys: 6 }),
  ),
}));

it("is the text of fast-json-stable-stringify, in whatever order members come", () => {
  fc.assert(
    fc.property(value, (given) => {
      const expected = stringify(given);
      expect(canonicalText(given)).toBe(expected);
      expect(canonicalText(normalize(given, { maxBytes: 1 << 20 }))).toBe(expected);
    }),
    { numRuns: 2000 },
  );
});

it("tells ids that are not a body's, also of bodies that were hashed just before", () => {
  const bodies = ["one", "two"].map((text) => Buffer.from(text));
  const [one, two] = bodies as [Buffer, Buffer];
  const [id, other] = [hashObject("blob", one), hashObject("blob", two)];
  expect(hasId("tree", one, id)).toBe(false);
  expect(hasId("blob", one, other)).toBe(false);
  expect(hasId("blob", Buffer.from("one"), id)).toBe(true);
  for (let i = 0; i < 2; i++) {
    expect(hasId("blob", one, id)).toBe(true);
    expect(hasId("blob", two, id)).toBe(false);
  }
});
