import { expect, test } from "vitest";
import { formatDataPolicy, parseDataPolicy } from "../../src/objects/data-policy.js";

test("a policy that says no more than its paths keeps the older form", () => {
  const policy = {
    isolation: ["/state/a"],
    subjects: [],
    keyed: "nothing",
    placement: [],
  } as const;
  expect(formatDataPolicy(policy)).toBe('["/state/a"]');
  expect(parseDataPolicy('["/state/a"]')).toEqual(policy);
});

test("a policy that says more comes back as it was", () => {
  const policies = [
    { isolation: [], subjects: ["/state/users/{subject}"], keyed: "nothing", placement: [] },
    { isolation: ["/state/a"], subjects: [], keyed: "hashes", placement: [] },
    { isolation: [], subjects: ["/step/input/{subject}"], keyed: "payloads", placement: [] },
    {
      isolation: [],
      subjects: [],
      keyed: "nothing",
      placement: [
        { path: "/state/a", region: "us", classification: "regulated" },
        { phase: "tool", region: "ap", classification: "internal" },
      ],
    },
    { isolation: [], subjects: [], keyed: "nothing", placement: [], home: "eu" },
  ] as const;
  for (const policy of policies) expect(parseDataPolicy(formatDataPolicy(policy))).toEqual(policy);
});

test("what a newer version declares is refused, not passed over", () => {
  for (const text of ['{"isolation":[],"more":1}', '{"keyed":"names"}', '"x"']) {
    expect(() => parseDataPolicy(text)).toThrowError(
      expect.objectContaining({ code: "UNSUPPORTED_ENCODING" }),
    );
  }
});
