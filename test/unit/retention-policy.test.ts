import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseRetention, retentionText } from "../../src/core/period.js";
import { cutoffOf } from "../../src/store/retention/cutoff.js";
import { agstateError } from "../support/stores.js";

const before = (period: string, now: string) => {
  const seconds = cutoffOf(period, Date.parse(now));
  return Number.isFinite(seconds) ? new Date(seconds * 1000).toISOString() : seconds;
};

describe("a moment so long before another, by the calendar of UTC", () => {
  it.each([
    ["P1M", "2024-03-31T12:00:00Z", "2024-02-29T12:00:00.000Z"],
    ["P1M", "2023-03-31T12:00:00Z", "2023-02-28T12:00:00.000Z"],
    ["P1M", "2024-05-31T00:00:00Z", "2024-04-30T00:00:00.000Z"],
    ["P1M", "2024-03-29T00:00:00Z", "2024-02-29T00:00:00.000Z"],
    ["P1Y", "2024-02-29T10:00:00Z", "2023-02-28T10:00:00.000Z"],
    ["P4Y", "2024-02-29T10:00:00Z", "2020-02-29T10:00:00.000Z"],
    ["P1Y1M", "2024-03-31T00:00:00Z", "2023-02-28T00:00:00.000Z"],
    // The month first, then the day: from the last of February one day back.
    ["P1M1D", "2024-03-31T00:00:00Z", "2024-02-28T00:00:00.000Z"],
    ["P12M", "2024-07-15T00:00:00Z", "2023-07-15T00:00:00.000Z"],
    ["P2W", "2024-01-08T00:00:00Z", "2023-12-25T00:00:00.000Z"],
    ["P90D", "2024-05-30T01:02:03Z", "2024-03-01T01:02:03.000Z"],
    // No clock is put forward or back in UTC.
    ["P1D", "2024-03-31T03:30:00Z", "2024-03-30T03:30:00.000Z"],
    ["PT36H", "2024-03-01T00:00:00Z", "2024-02-28T12:00:00.000Z"],
    ["P0D", "2024-03-01T00:00:00.999Z", "2024-03-01T00:00:00.000Z"],
    ["P999999999Y", "2024-03-01T00:00:00Z", Number.NEGATIVE_INFINITY],
  ])("%s before %s is %s", (period, now, expected) => {
    expect(before(period, now)).toBe(expected);
  });
});

describe("a retention policy", () => {
  it("has one text, from which it is read again", () => {
    expect(retentionText(parseRetention("P90D"))).toBe("P90D");
    expect(retentionText(parseRetention("payload=P90D"))).toBe("P90D");
    expect(retentionText(parseRetention({ payload: "P90D" }))).toBe("P90D");
    expect(retentionText(parseRetention("history=P1Y;payload=P90D"))).toBe(
      "payload=P90D;history=P1Y",
    );
    expect(retentionText(parseRetention({ history: "P1Y" }))).toBe("history=P1Y");
    const part = fc.nat(20);
    fc.assert(
      fc.property(part, part, (days, more) => {
        const policy = { payload: `P${days}D`, history: `P${days + more}D` };
        const text = retentionText(parseRetention(policy));
        expect(parseRetention(text)).toEqual(policy);
      }),
    );
  });

  it("keeps history no shorter than payload", () => {
    for (const [payload, history] of [
      ["P1Y", "P12M"],
      ["P12M", "P1Y"],
      ["P30D", "P1M"],
      ["P1W", "P7D"],
      ["PT24H", "P1D"],
    ] as const) {
      expect(parseRetention({ payload, history })).toEqual({ payload, history });
    }
    for (const [payload, history] of [
      ["P1Y", "P11M"],
      ["P31D", "P1M"],
      ["P90D", "P89D"],
    ] as const) {
      expect(() => parseRetention({ payload, history })).toThrow(/must not be shorter/);
    }
  });

  it.each([
    "",
    "P",
    "P-1D",
    "-P1D",
    "P1.5D",
    "P1,5D",
    "payload=",
    "payload=P1D;",
    "payload=P1D;payload=P2D",
    "history=P1D;payload=soon",
    "keep=P1D",
    "payload=P1D;history=P1Y;more=P1D",
    {},
    { payload: undefined },
    { payload: 90 },
    { payload: "P1D", other: "P1D" },
    ["P1D"],
    null,
    90,
  ])("is not %j", (given) => {
    expect(() => parseRetention(given)).toThrow(agstateError("INVALID_ARGUMENT"));
  });
});
