import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { formatHttpDate, parseHttpDate } from "../../src/core/http-date.js";
import { httpVersionOf, httpVersionToken, parseHttpVersion } from "../../src/core/http-version.js";
import { usually } from "../support/runs.js";

const NOW = Date.UTC(2026, 0, 15, 12, 0, 0);
const EXAMPLE = Date.UTC(1994, 10, 6, 8, 49, 37);

describe("dates of HTTP", () => {
  test.each([
    "Sun, 06 Nov 1994 08:49:37 GMT",
    "Sunday, 06-Nov-94 08:49:37 GMT",
    "Sun Nov  6 08:49:37 1994",
  ])("%s is the example of RFC 9110", (text) => {
    expect(parseHttpDate(text, NOW)).toBe(EXAMPLE);
  });

  test.each([
    "",
    "Sun, 6 Nov 1994 08:49:37 GMT",
    "sun, 06 nov 1994 08:49:37 gmt",
    "Sun, 06 Nov 1994 08:49:37 UTC",
    "Sun, 06 Nov 1994 08:49:37 +0000",
    "Sun, 06 Nov 1994 08:49:37",
    "Mon, 06 Nov 1994 08:49:37 GMT",
    "Sun, 31 Nov 1994 08:49:37 GMT",
    "Sun, 00 Nov 1994 08:49:37 GMT",
    "Sun, 06 Nov 1994 24:00:00 GMT",
    "Sun, 06 Nov 1994 08:60:00 GMT",
    "Sun, 06 Nov 1994 08:49:61 GMT",
    " Sun, 06 Nov 1994 08:49:37 GMT",
    "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT",
    "Sun, 06-Nov-94 08:49:37 GMT",
    "Sun Nov 6 08:49:37 1994",
    "1994-11-06T08:49:37Z",
    "784111777",
    "0",
    "-1",
  ])("%j is none", (text) => {
    expect(parseHttpDate(text, NOW)).toBeNull();
  });

  test.each([
    ["Thursday, 15-Jan-76 12:00:00 GMT", null],
    ["Wednesday, 15-Jan-76 12:00:00 GMT", Date.UTC(2076, 0, 15, 12)],
    ["Friday, 15-Jan-77 12:00:00 GMT", null],
    ["Saturday, 15-Jan-77 12:00:00 GMT", Date.UTC(1977, 0, 15, 12)],
    ["Thursday, 15-Jan-26 12:00:00 GMT", NOW],
    ["Saturday, 01-Jan-00 00:00:00 GMT", Date.UTC(2000, 0, 1)],
  ])("%s has a year that is at most 50 years ahead", (text, at) => {
    expect(parseHttpDate(text, NOW)).toBe(at);
  });

  test("a leap second ends its minute", () => {
    const text = "Sat, 31 Dec 2016 23:59:60 GMT";
    expect(parseHttpDate(text, NOW)).toBe(Date.UTC(2017, 0, 1));
  });

  test("every second is read as it is written, in all three forms", () => {
    const years = { min: new Date(0), max: new Date(Date.UTC(2075, 0, 1)), noInvalidDate: true };
    fc.assert(
      fc.property(fc.date(years), (date) => {
        const at = Math.floor(date.getTime() / 1000) * 1000;
        const imf = formatHttpDate(date.getTime());
        expect(imf).toMatch(/^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/);
        const [, day, month, year, time] = imf.split(" ");
        const weekday = date.toLocaleDateString("en-US", { weekday: "long", timeZone: "UTC" });
        const old = `${weekday}, ${day}-${month}-${year?.slice(2)} ${time} GMT`;
        const asctime = `${imf.slice(0, 3)} ${month} ${String(Number(day)).padStart(2)} ${time} ${year}`;
        expect(parseHttpDate(imf, NOW)).toBe(at);
        expect(parseHttpDate(asctime, NOW)).toBe(at);
        if (at >= Date.UTC(1977, 0, 1)) expect(parseHttpDate(old, NOW)).toBe(at);
      }),
      { numRuns: usually(500, 20_000) },
    );
  });
});

describe("the version of an answer", () => {
  const date = "Sun, 06 Nov 1994 08:49:38 GMT";
  const modified = "Sun, 06 Nov 1994 08:49:37 GMT";

  test.each<[Record<string, string>, string | null]>([
    [{ etag: '"abc"' }, 'etag:"abc"'],
    [{ etag: 'W/"abc"' }, 'etag:W/"abc"'],
    [{ etag: '""' }, 'etag:""'],
    [{ etag: '"abc"', "last-modified": modified }, 'etag:"abc"'],
    [{ "last-modified": modified }, `last-modified:${modified}`],
    [{ "last-modified": "Sunday, 06-Nov-94 08:49:37 GMT" }, `last-modified:${modified}`],
    [{ "last-modified": modified, date }, `last-modified:${modified}`],
    // It may change again within this second, and keep its date.
    [{ "last-modified": modified, date: modified }, null],
    [{ "last-modified": date, date: modified }, null],
    [{ "last-modified": formatHttpDate(NOW) }, null],
    [
      { "last-modified": formatHttpDate(NOW - 1000) },
      `last-modified:${formatHttpDate(NOW - 1000)}`,
    ],
    [{ "last-modified": formatHttpDate(NOW + 3_600_000) }, null],
    [{ "last-modified": "yesterday" }, null],
    [{ "last-modified": modified, date: "today" }, `last-modified:${modified}`],
    // An ETag that is none leaves the date.
    [{ etag: "abc", "last-modified": modified }, `last-modified:${modified}`],
    [{ etag: 'w/"abc"' }, null],
    [{ etag: '"a"b"' }, null],
    [{ etag: '"a b"' }, null],
    [{ etag: '"\u00e9"' }, null],
    [{ etag: '"a", "b"' }, null],
    [{ etag: `"${"a".repeat(5000)}"` }, null],
    [{}, null],
  ])("with %j is %s", (headers, version) => {
    expect(httpVersionOf(new Headers(headers), { now: NOW })).toBe(version);
  });

  test("is read back as it was written", () => {
    const tag = fc
      .tuple(fc.constantFrom("", "W/"), fc.stringMatching(/^[!#-~]{0,40}$/))
      .map(([weak, opaque]) => `${weak}"${opaque}"`);
    fc.assert(
      fc.property(tag, fc.integer({ min: 0, max: NOW / 1000 - 1 }), (etag, seconds) => {
        for (const headers of [{ etag }, { "last-modified": formatHttpDate(seconds * 1000) }]) {
          const token = httpVersionOf(new Headers(headers as never), { now: NOW });
          const version = parseHttpVersion(String(token), NOW);
          expect(version === null ? null : httpVersionToken(version)).toBe(token);
        }
      }),
      { numRuns: usually(500, 20_000) },
    );
  });

  test.each(["", "abc", '"abc"', "etag:", "etag:abc", "last-modified:", "version:7", 'ETAG:"a"'])(
    "%j is no token of one",
    (token) => {
      expect(parseHttpVersion(token, NOW)).toBeNull();
    },
  );
});
