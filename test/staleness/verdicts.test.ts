import fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import { checkResources } from "../../src/staleness/check.js";
import { createEgress } from "../../src/staleness/egress.js";
import type { Resource, Verdict } from "../../src/staleness/types.js";
import { RESOURCE_KINDS, type ResourceKind, resourceCheckers } from "../support/resource-kinds.js";
import {
  type Answer,
  type ResourceServer,
  startResourceServer,
} from "../support/resource-server.js";
import { usually } from "../support/runs.js";

type Type = ResourceKind["type"];

/** What a resource may be found in: what is answered, and which verdict docs/staleness.md has for that. */
interface State {
  readonly answer: (kind: ResourceKind, n: number, places: Places) => Answer;
  readonly verdict: Verdict | Readonly<Record<Type, Verdict>>;
  /** What is on record, where it is something else than usual. */
  readonly version?: string | null;
  readonly only?: Type;
}

/** Where redirects lead. */
interface Places {
  readonly server: ResourceServer;
  readonly other: ResourceServer;
}

const DAY_MS = 24 * 60 * 60 * 1000;
const httpDate = (at: number) => new Date(at).toUTCString();
const MODIFIED = "Sun, 06 Nov 1994 08:49:37 GMT";
const LATER = "Sun, 06 Nov 1994 08:49:38 GMT";
const TOMORROW = httpDate(Date.now() + DAY_MS);
const REST = { confluence: "unknown", jira: "unknown", "github-pr": "unknown" } as const;

function status(code: number, headers: Readonly<Record<string, string>> = {}): State {
  return { answer: () => ({ status: code, headers, body: "<html>" }), verdict: "unknown" };
}

function gone(code: number): State {
  return { ...status(code), verdict: "stale" };
}

/** The answer of one that is the same, or is not, with some headers besides. */
function withHeaders(
  which: "same" | "changed",
  headers: Readonly<Record<string, string>>,
  verdict: State["verdict"],
): State {
  return {
    answer: (kind, n) => {
      const answer = kind[which](n);
      return { ...answer, headers: { ...answer.headers, ...headers } };
    },
    verdict,
  };
}

function redirectTo(
  location: (places: Places, there: string) => string,
  verdict: State["verdict"],
): State {
  return {
    answer: (kind, n, places) => {
      const there = `/there/${kind.type}/${n}`;
      for (const server of [places.server, places.other]) server.at(there, kind.same(n));
      return { status: 302, headers: { location: location(places, there) } };
    },
    verdict,
  };
}

/** Answers of an HTTP resource alone, by what is on record. */
function http(version: string | null, answer: Exclude<Answer, string>, verdict: Verdict): State {
  return { answer: () => answer, verdict, version, only: "http" };
}

function dated(
  modified: string,
  headers: Readonly<Record<string, string>> = {},
): Exclude<Answer, string> {
  return { status: 200, headers: { "last-modified": modified, ...headers }, body: "content" };
}

function tagged(code: number, etag?: string): Exclude<Answer, string> {
  return { status: code, headers: etag === undefined ? {} : { etag } };
}

const STATES: Readonly<Record<string, State>> = {
  same: { answer: (kind, n) => kind.same(n), verdict: "fresh" },
  changed: { answer: (kind, n) => kind.changed(n), verdict: "stale" },
  "not found": gone(404),
  gone: gone(410),
  "gone, with nothing on record": { ...gone(404), version: null },
  ...Object.fromEntries(
    [
      203, 204, 206, 300, 304, 400, 401, 402, 403, 405, 406, 408, 409, 418, 425, 429, 451, 500, 501,
      502, 503, 504, 599,
    ].map((code) => [String(code), status(code)]),
  ),
  "redirect to nowhere": status(302),
  // HTTP's "not modified" answers the ETag that was sent; the others send none.
  "304": { ...status(304), verdict: { http: "fresh", ...REST } },
  "a page of HTML": {
    answer: () => ({
      status: 200,
      headers: { "content-type": "text/html" },
      body: "<h1>Log in</h1>",
    }),
    verdict: "unknown",
  },
  "HTML that says that it is JSON": withBody("<h1>Log in</h1>"),
  "JSON that says that it is HTML": withHeaders(
    "same",
    { "content-type": "text/html" },
    {
      http: "fresh",
      ...REST,
    },
  ),
  "half of it": withBody('{"id":'),
  "an array": withBody("[]"),
  null: withBody("null"),
  "no member": withBody("{}"),
  "bytes that are no UTF-8": withBody(Buffer.from([0x7b, 0xff, 0x7d])),
  "an answer for another resource": {
    answer: (kind, n) => kind.same(n + 1000),
    // A Jira issue that moved answers with another key.
    verdict: { http: "fresh", ...REST, jira: "fresh" },
  },
  "too much": {
    answer: (kind, n) => {
      const { body = "", ...answer } = kind.same(n);
      return { ...answer, body: `${body}${" ".repeat(5_000_000)}` };
    },
    verdict: { http: "fresh", ...REST },
  },
  resets: { answer: () => "resets", verdict: "unknown" },
  truncates: { answer: () => "truncates", verdict: "unknown" },
  "too long headers": withHeaders("same", { "x-long": "a".repeat(80_000) }, "unknown"),
  "moved within the origin": redirectTo((_, there) => there, "fresh"),
  "moved to another origin": redirectTo(({ other }, there) => other.url + there, {
    http: "fresh",
    ...REST,
  }),
  "moved inside": redirectTo(() => "http://169.254.169.254/latest/", "unknown"),
  "moved to a file": redirectTo(() => "file:///etc/passwd", "unknown"),
  "moved in a circle": {
    answer: (kind, n) => ({ status: 301, headers: { location: kind.path(n) } }),
    verdict: "unknown",
  },
  "from a cache": withHeaders("same", { age: "10" }, "unknown"),
  "changed, from a cache": withHeaders("changed", { age: "10" }, "unknown"),
  "gone, from a cache": { ...status(404, { age: "1" }), verdict: "unknown" },
  "from a cache of no age": withHeaders("same", { age: "0" }, "fresh"),
  "stale, as its cache says": withHeaders(
    "same",
    { warning: '110 - "Response is Stale"' },
    "unknown",
  ),
  "nothing on record": { answer: (kind, n) => kind.same(n), verdict: "unknown", version: null },
  "no version on record": {
    answer: (kind, n) => kind.same(n),
    verdict: "unknown",
    version: "what is none",
  },

  "weak, and strong on record": http('etag:"v1"', tagged(200, 'W/"v1"'), "fresh"),
  "strong, and weak on record": http('etag:W/"v1"', tagged(200, '"v1"'), "fresh"),
  "weak and another": http('etag:W/"v1"', tagged(200, 'W/"v2"'), "stale"),
  "not modified": http('etag:W/"v1"', tagged(304, '"v1"'), "fresh"),
  "not modified, of another": http('etag:"v1"', tagged(304, '"v2"'), "unknown"),
  "not modified, of what is none": http('etag:"v1"', tagged(304, "v1"), "unknown"),
  "not modified, unasked": http(`last-modified:${MODIFIED}`, tagged(304), "unknown"),
  "not modified since": http(
    `last-modified:${MODIFIED}`,
    { status: 304, headers: { "last-modified": MODIFIED } },
    "unknown",
  ),
  "not modified, with nothing on record": http(null, tagged(304, '"v1"'), "unknown"),
  "an ETag that is none": http('etag:"v1"', tagged(200, "v1"), "unknown"),
  "no ETag any more": http('etag:"v1"', tagged(200), "unknown"),
  "a date, and an ETag on record": http('etag:"v1"', dated(MODIFIED), "unknown"),
  "an ETag, and a date on record": http(
    `last-modified:${MODIFIED}`,
    tagged(200, '"v1"'),
    "unknown",
  ),
  "the same date": http(`last-modified:${MODIFIED}`, dated(MODIFIED), "fresh"),
  "the same date, and an ETag": http(
    `last-modified:${MODIFIED}`,
    dated(MODIFIED, { etag: '"x"' }),
    "fresh",
  ),
  "the same date in an old form": http(
    `last-modified:${MODIFIED}`,
    dated("Sunday, 06-Nov-94 08:49:37 GMT"),
    "fresh",
  ),
  "a later date": http(`last-modified:${MODIFIED}`, dated(LATER), "stale"),
  "an earlier date": http(`last-modified:${LATER}`, dated(MODIFIED), "stale"),
  "a date that is none": http(`last-modified:${MODIFIED}`, dated("yesterday"), "unknown"),
  "a date of tomorrow": http(`last-modified:${MODIFIED}`, dated(TOMORROW), "unknown"),
  "a date of tomorrow, on record": http(`last-modified:${TOMORROW}`, dated(MODIFIED), "unknown"),
  "the same date of tomorrow": http(`last-modified:${TOMORROW}`, dated(TOMORROW), "unknown"),
  "the same date of tomorrow, without a clock": http(
    `last-modified:${TOMORROW}`,
    { ...dated(TOMORROW), date: false },
    "unknown",
  ),
  "the same date of tomorrow, by a clock of the day after": http(
    `last-modified:${TOMORROW}`,
    dated(TOMORROW, { date: httpDate(Date.now() + 2 * DAY_MS) }),
    "fresh",
  ),
  "the same date, by a clock of the day before": http(
    `last-modified:${MODIFIED}`,
    dated(MODIFIED, { date: "Sat, 05 Nov 1994 08:49:37 GMT" }),
    "unknown",
  ),
  "the same date, by a clock that shows none": http(
    `last-modified:${MODIFIED}`,
    dated(MODIFIED, { date: "now" }),
    "fresh",
  ),
};

function withBody(body: string | Buffer): State {
  return {
    answer: () => ({ status: 200, headers: { "content-type": "application/json" }, body }),
    verdict: "unknown",
  };
}

const CASES = Object.entries(STATES).flatMap(([name, state]) =>
  RESOURCE_KINDS.filter(({ type }) => (state.only ?? type) === type).map((kind) => ({
    name: `${kind.type}: ${name}`,
    kind,
    state,
    expected: typeof state.verdict === "string" ? state.verdict : state.verdict[kind.type],
  })),
);

async function places(): Promise<Places> {
  return { server: await startResourceServer(), other: await startResourceServer() };
}

/** Sets a resource's state, and answers it as an envelope has it. */
function put({ kind, state }: (typeof CASES)[number], n: number, where: Places): Resource {
  where.server.at(kind.path(n), state.answer(kind, n, where));
  return {
    type: kind.type,
    id: kind.id(n, where.server.url),
    version: state.version === undefined ? kind.version : state.version,
    tolerance: "exact",
    observedAt: Date.now() - 7 * DAY_MS,
    steps: [],
  };
}

function checkersOf({ server }: Places) {
  const egress = createEgress({ allow: ["127.0.0.1"] });
  onTestFinished(() => egress.close());
  return resourceCheckers(egress, server.url);
}

describe("every verdict is as the documented table says", () => {
  test("state by state", async () => {
    const where = await places();
    const resources = CASES.map((one, n) => put(one, n, where));
    const checked = await checkResources(resources, { checkers: checkersOf(where), retries: 0 });
    const found = checked.map(({ verdict, why }, n) => ({ case: CASES[n]?.name, verdict, why }));
    expect(found.map(({ case: name, verdict }) => [name, verdict])).toEqual(
      CASES.map(({ name, expected }) => [name, expected]),
    );
    for (const { why } of found) expect(why).not.toMatch(/its checker failed|passwd/);
  });

  test("in any mixture, and asked again where that may help", async () => {
    const where = await places();
    const checkers = checkersOf(where);
    const some = fc.array(fc.tuple(fc.constantFrom(...CASES), fc.boolean()), {
      minLength: 1,
      maxLength: 12,
    });
    await fc.assert(
      fc.asyncProperty(some, async (chosen) => {
        const resources = chosen.map(([one], n) => put(one, n, where));
        const expected = chosen.map(([{ kind, expected: verdict }, recovers], n) => {
          if (!recovers) return verdict;
          // At first it is busy, and says for how long.
          const path = kind.path(n);
          const settled = chosen[n]?.[0].state.answer(kind, n, where) ?? "silent";
          let asked = 0;
          where.server.at(path, () =>
            asked++ === 0 ? { status: 503, headers: { "retry-after": "0" } } : settled,
          );
          return verdict;
        });
        const options = { checkers, retries: 1, concurrency: 5 };
        const checked = await checkResources(resources, options);
        expect(checked.map(({ verdict }) => verdict)).toEqual(expected);
      }),
      { numRuns: usually(10, 500) },
    );
  });

  test("what does not answer in time is unknown, and holds nothing else up", async () => {
    const where = await places();
    const slow = (["silent", "stalls", "drips"] as const).flatMap((answer) =>
      RESOURCE_KINDS.map((kind) => ({
        name: answer,
        kind,
        state: { answer: () => answer, verdict: "unknown" as const },
        expected: "unknown" as const,
      })),
    );
    const usual = RESOURCE_KINDS.map((kind) => ({
      name: "same",
      kind,
      state: STATES.same as State,
      expected: "fresh" as const,
    }));
    const resources = [...slow, ...usual].map((one, n) => put(one, n, where));
    const options = { checkers: checkersOf(where), retries: 0, timeoutMs: 1500 };
    const checked = await checkResources(resources, options);
    expect(checked.map(({ verdict }) => verdict)).toEqual(
      [...slow, ...usual].map(({ expected }) => expected),
    );
  });
});
