import { describe, expect, onTestFinished, test } from "vitest";
import { confluenceChecker } from "../../src/staleness/checkers/confluence.js";
import { githubPrChecker } from "../../src/staleness/checkers/github-pr.js";
import { httpChecker } from "../../src/staleness/checkers/http.js";
import { jiraChecker } from "../../src/staleness/checkers/jira.js";
import { createEgress, type Egress } from "../../src/staleness/egress.js";
import type { Checker, Compared, Observation } from "../../src/staleness/types.js";
import { issue, page, pull, RESOURCE_KINDS, resourceCheckers } from "../support/resource-kinds.js";
import { startResourceServer } from "../support/resource-server.js";

const NOW = Date.UTC(2026, 0, 15, 12);
const TOKEN = "t0ken-of-the-test";

function egressFor(allow = ["127.0.0.1"]): Egress {
  const egress = createEgress({ allow });
  onTestFinished(() => egress.close());
  return egress;
}

async function observe(
  checker: Checker,
  id: string,
  version: string | null = null,
): Promise<Observation> {
  const { signal } = new AbortController();
  return await checker.observe({ id, version }, { signal, now: Date.now });
}

function compare(checker: Checker, then: string, now: string, observedAt = NOW - 1e7): Compared {
  return checker.compare?.(then, now, { now: NOW, observedAt }) ?? { unknown: "no compare" };
}

describe("http", () => {
  test("asks with the ETag on record, by GET", async () => {
    const server = await startResourceServer();
    server.at("/x", ({ headers }) => ({
      status: headers["if-none-match"] === 'W/"a"' ? 304 : 200,
    }));
    const found = await observe(
      httpChecker({ egress: egressFor() }),
      `${server.url}/x`,
      'etag:W/"a"',
    );
    expect(found).toEqual({ kind: "same" });
    expect(server.received.map(({ method }) => method)).toEqual(["GET"]);
  });

  test.each([
    ["known", () => ({ status: 200, headers: { etag: '"a"' } }), ["HEAD"]],
    ["405", () => ({ status: 405 }), ["HEAD", "GET"]],
    ["501", () => ({ status: 501 }), ["HEAD", "GET"]],
    ["without a version", () => ({ status: 200 }), ["HEAD", "GET"]],
    ["404", () => ({ status: 404 }), ["HEAD"]],
    ["503", () => ({ status: 503 }), ["HEAD"]],
  ])("asks without one by HEAD, and by GET where HEAD is %s", async (_, head, methods) => {
    const server = await startResourceServer();
    server.at("/x", ({ method }) =>
      method === "HEAD" ? head() : { status: 200, headers: { etag: '"a"' }, body: "content" },
    );
    const found = await observe(httpChecker({ egress: egressFor() }), `${server.url}/x`);
    expect(server.received.map(({ method }) => method)).toEqual(methods);
    expect(server.received[0]?.headers["if-none-match"]).toBeUndefined();
    expect(server.received[0]?.headers["if-modified-since"]).toBeUndefined();
    if (methods.includes("GET")) expect(found).toEqual({ kind: "version", version: 'etag:"a"' });
  });

  test("does not read what it asks for", async () => {
    const server = await startResourceServer();
    server.at("/x", { status: 200, headers: { etag: '"b"' }, body: "a".repeat(5_000_000) });
    const found = await observe(
      httpChecker({ egress: egressFor() }),
      `${server.url}/x`,
      'etag:"a"',
    );
    expect(found).toEqual({ kind: "version", version: 'etag:"b"' });
  });

  test("sends credentials to what lies below their base, and not the URL's own", async () => {
    const server = await startResourceServer();
    const headers = { authorization: `Bearer ${TOKEN}` };
    const credentials = [{ base: `${server.url}/api`, headers }];
    const checker = httpChecker({ egress: egressFor(), credentials });
    await observe(checker, `${server.url}/api/x`);
    await observe(checker, `${server.url}/apix`);
    const refused = await observe(checker, `http://user:${TOKEN}@127.0.0.1:${server.port}/api/x`);
    expect(server.received.map((one) => one.headers.authorization)).toEqual([
      `Bearer ${TOKEN}`,
      undefined,
    ]);
    expect(refused).toMatchObject({ kind: "unknown", why: expect.stringContaining("not asked") });
    expect(JSON.stringify(refused)).not.toContain(TOKEN);
  });

  test.each<[then: string, now: string, readAfterMs: number, compared: string]>([
    ['etag:"a"', 'etag:"a"', 0, "same"],
    ['etag:W/"a"', 'etag:"a"', 0, "same"],
    ['etag:"a"', 'etag:"A"', 0, "changed"],
    [
      "last-modified:Thu, 15 Jan 2026 11:00:00 GMT",
      "last-modified:Thu, 15 Jan 2026 11:00:00 GMT",
      1000,
      "same",
    ],
    [
      "last-modified:Thu, 15 Jan 2026 11:00:00 GMT",
      "last-modified:Thu, 15 Jan 2026 11:00:00 GMT",
      999,
      "unknown",
    ],
    [
      "last-modified:Thu, 15 Jan 2026 11:00:00 GMT",
      "last-modified:Thu, 15 Jan 2026 11:00:00 GMT",
      -2000,
      "unknown",
    ],
    [
      "last-modified:Thu, 15 Jan 2026 11:00:00 GMT",
      "last-modified:Thu, 15 Jan 2026 11:00:00 GMT",
      -1e7,
      "same",
    ],
    [
      "last-modified:Thu, 15 Jan 2026 11:00:00 GMT",
      "last-modified:Thu, 15 Jan 2026 11:00:01 GMT",
      0,
      "changed",
    ],
    ['etag:"a"', "last-modified:Thu, 15 Jan 2026 11:00:00 GMT", 1000, "unknown"],
    ["a", 'etag:"a"', 0, "unknown"],
    ['etag:"a"', "a", 0, "unknown"],
  ])("%s and %s, read %i ms after its hour: %s", (then, now, readAfterMs, compared) => {
    const checker = httpChecker({ egress: egressFor() });
    const found = compare(checker, then, now, Date.UTC(2026, 0, 15, 11) + readAfterMs);
    expect(typeof found === "object" ? "unknown" : found).toBe(compared);
  });
});

describe("what does not come in time is unknown, and may be asked again", () => {
  const cases = RESOURCE_KINDS.flatMap((kind) =>
    (["silent", "stalls", "drips"] as const)
      // Of a resource of HTTP the headers are enough.
      .filter((answer) => kind.type !== "http" || answer === "silent")
      .map((answer) => ({ type: kind.type, answer, kind })),
  );
  test.each(cases)("$type: $answer", async ({ type, answer, kind }) => {
    const server = await startResourceServer();
    const attempt = new AbortController();
    server.at(kind.path(0), () => {
      setTimeout(() => attempt.abort(), 20);
      return answer;
    });
    const checker = resourceCheckers(egressFor(), server.url)[type] as Checker;
    const about = { id: kind.id(0, server.url), version: kind.version };
    const found = await checker.observe(about, { signal: attempt.signal, now: Date.now });
    expect(found).toEqual({ kind: "unknown", why: "no whole answer in time", again: true });
  });
});

describe("ids that lead elsewhere are not asked about", () => {
  const evil = [
    "",
    "..",
    "../../admin",
    "1/../2",
    "1?x=1",
    "1#x",
    "1%2f2",
    "%2e%2e",
    "1\\2",
    "1\n2",
    "1 2",
    " 1",
    "1\u0000",
    "ABC-1/../ABC-2",
    "ABC-1?fields=x",
    "abc-1",
    "ABC-",
    "owner/repository#1/../2",
    "owner/..#1",
    "owner/.#1",
    "../repository#1",
    "owner/a/b#1",
    "owner/repository#0",
    "owner/repository#01",
    "owner/repository#1?x",
    "owner%2frepository/x#1",
    "https://example.com/",
    "1".repeat(20),
    "\u0661",
  ];
  const rest = RESOURCE_KINDS.filter(({ type }) => type !== "http");
  test.each(rest.flatMap(({ type }) => evil.map((id) => [type, id] as const)))(
    "%s %j",
    async (type, id) => {
      // Digits alone are a page, and nothing else's.
      const server = await startResourceServer();
      const checker = resourceCheckers(egressFor(), server.url)[type] as Checker;
      const found = await observe(checker, id);
      expect(found).toMatchObject({
        kind: "unknown",
        why: expect.stringMatching(/^its id is none of/),
      });
      expect(server.received).toEqual([]);
    },
  );
});

describe("shown", () => {
  test.each<[type: string, answer: ReturnType<typeof page>, shown: string]>([
    ["confluence", page("1000"), 'version 7 of "Refund rules"'],
    ["confluence", page("1000", { status: "archived" }), 'version 7 of "Refund rules", archived'],
    ["confluence", page("1000", { title: undefined }), "version 7 of the page"],
    ["confluence", page("1000", { title: "a\r\nb\u001b[31m\u202e" }), 'version 7 of "a b [31m "'],
    [
      "jira",
      issue("ABC-1"),
      'ABC-1, In Progress, updated 2024-05-02T10:11:12.123+0000: "Refunds take too long"',
    ],
    [
      "jira",
      issue("NEW-9", { status: null, summary: null }),
      "ABC-1, moved to NEW-9, updated 2024-05-02T10:11:12.123+0000",
    ],
    ["github-pr", pull(1), '#1 "Refund sooner", open, at 6dcb09b5b578, into main'],
    [
      "github-pr",
      pull(1, { state: "closed" }),
      '#1 "Refund sooner", closed, at 6dcb09b5b578, into main',
    ],
    [
      "github-pr",
      pull(1, { state: "closed", merged: undefined, merged_at: "2024-05-02T10:11:12Z" }),
      '#1 "Refund sooner", merged, at 6dcb09b5b578, into main',
    ],
  ])("%s %#", async (type, answer, shown) => {
    const server = await startResourceServer();
    const kind = RESOURCE_KINDS.find((one) => one.type === type);
    server.at(String(kind?.path(0)), answer);
    const checker = resourceCheckers(egressFor(), server.url)[type] as Checker;
    const found = await observe(checker, String(kind?.id(0, "")));
    expect(found).toMatchObject({ kind: "version", shown });
  });

  test("is cut at 200", async () => {
    const server = await startResourceServer();
    server.at("/wiki/api/v2/pages/1", page("1", { title: "long ".repeat(1000) }));
    const checker = confluenceChecker({ egress: egressFor(), base: server.url });
    const { shown = "" } = (await observe(checker, "1")) as { shown?: string };
    expect(shown).toHaveLength(200);
  });
});

describe("answers that are nearly right are unknown", () => {
  test.each<[type: string, answer: ReturnType<typeof page>]>([
    ["confluence", page("1001")],
    ["confluence", page("1000", { version: { number: "7" } })],
    ["confluence", page("1000", { version: { number: 0 } })],
    ["confluence", page("1000", { version: { number: 7.5 } })],
    ["confluence", page("1000", { version: null })],
    ["confluence", page("1000", { version: [7] })],
    ["confluence", page("1000", { status: "draft" })],
    ["confluence", page("1000", { status: undefined })],
    ["jira", issue("abc-1")],
    ["jira", issue("ABC-1", { updated: undefined })],
    ["jira", issue("ABC-1", { updated: 1714644672123 })],
    ["jira", issue("ABC-1", { updated: "2024-02-30T10:11:12.123+0000" })],
    ["jira", issue("ABC-1", { updated: "2024-05-02 10:11:12" })],
    ["jira", issue("ABC-1", { updated: "2024-05-02T10:11:12.123+0000\nx" })],
    ["jira", issue("ABC-1", { updated: "2124-05-02T10:11:12.123+0000" })],
    ["github-pr", pull(2)],
    ["github-pr", pull(1, { number: "1" })],
    ["github-pr", pull(1, { state: "draft" })],
    ["github-pr", pull(1, { merged: true })],
    ["github-pr", pull(1, { head: null })],
    ["github-pr", pull(1, { head: { sha: "abc" } })],
    ["github-pr", pull(1, { base: { ref: "main state:open" } })],
    ["github-pr", pull(1, { base: {} })],
  ])("%s %#", async (type, answer) => {
    const server = await startResourceServer();
    const kind = RESOURCE_KINDS.find((one) => one.type === type);
    server.at(String(kind?.path(0)), answer);
    const checker = resourceCheckers(egressFor(), server.url)[type] as Checker;
    expect((await observe(checker, String(kind?.id(0, "")))).kind).toBe("unknown");
  });
});

describe("confluence", () => {
  test.each([
    ["v2", "", "/wiki/api/v2/pages/1"],
    ["v2", "/wiki/", "/wiki/api/v2/pages/1"],
    ["v2", "/ex/confluence/abc", "/ex/confluence/abc/wiki/api/v2/pages/1"],
    ["v1", "", "/rest/api/content/1?expand=version"],
    ["v1", "/wiki", "/wiki/rest/api/content/1?expand=version"],
  ] as const)("%s below %j asks for %s", async (api, base, path) => {
    const server = await startResourceServer();
    server.at(path, page("1"));
    const checker = confluenceChecker({ egress: egressFor(), base: server.url + base, api });
    expect(await observe(checker, "1")).toMatchObject({ kind: "version", version: "version:7" });
  });

  test.each(["trashed", "deleted"])("a page that is %s is gone", async (status) => {
    const server = await startResourceServer();
    server.at("/wiki/api/v2/pages/1", page("1", { status }));
    const checker = confluenceChecker({ egress: egressFor(), base: server.url });
    expect(await observe(checker, "1")).toEqual({ kind: "gone", why: `the page is ${status}` });
  });
});

describe("jira", () => {
  test("asks the API that it is told to", async () => {
    const server = await startResourceServer();
    server.at("/jira/rest/api/2/issue/A_1-2?fields=updated,status,summary", issue("A_1-2"));
    const checker = jiraChecker({ egress: egressFor(), base: `${server.url}/jira`, api: "2" });
    expect(await observe(checker, "A_1-2")).toMatchObject({ kind: "version" });
  });

  test.each<[now: string, compared: string]>([
    ["updated:2024-05-02T10:11:12.123+0000", "same"],
    ["updated:2024-05-02T10:11:12.123Z", "same"],
    ["updated:2024-05-02T12:11:12.123+0200", "same"],
    ["updated:2024-05-02T00:11:12.123-10:00", "same"],
    ["updated:2024-05-02T10:11:12.124+0000", "changed"],
    ["updated:2024-05-02T10:11:12.123+0200", "changed"],
    ["updated:2024-05-02T10:11:12.123", "unknown"],
    ["version:7", "unknown"],
  ])("compares instants, not texts: %s is %s", (found, compared) => {
    const checker = jiraChecker({ egress: egressFor(), base: "https://jira.example" });
    const then = "updated:2024-05-02T10:11:12.123+0000";
    for (const one of [compare(checker, then, found), compare(checker, found, then)]) {
      expect(typeof one === "object" ? "unknown" : one).toBe(compared);
    }
  });
});

describe("github-pr", () => {
  test("names the version of the API", async () => {
    const server = await startResourceServer();
    server.at("/repos/owner/repository/pulls/1", pull(1));
    const checker = githubPrChecker({ egress: egressFor(), base: server.url, token: TOKEN });
    await observe(checker, "owner/repository#1");
    expect(server.received[0]?.headers).toMatchObject({
      accept: "application/vnd.github+json",
      "x-github-api-version": "2022-11-28",
      authorization: `Bearer ${TOKEN}`,
    });
  });

  test("follows a repository that was renamed", async () => {
    const server = await startResourceServer();
    const location = `${server.url}/repositories/7/pulls/1`;
    server.at("/repos/owner/repository/pulls/1", { status: 301, headers: { location } });
    server.at("/repositories/7/pulls/1", pull(1));
    const checker = githubPrChecker({ egress: egressFor(), base: server.url });
    expect(await observe(checker, "owner/repository#1")).toMatchObject({ kind: "version" });
  });

  const date = "Thu, 15 Jan 2026 12:00:00 GMT";
  const spent = { "x-ratelimit-remaining": "0", "x-ratelimit-reset": String(NOW / 1000 + 90) };
  test.each<[status: number, headers: Record<string, string>, expected: object]>([
    [403, { "retry-after": "7" }, { again: true, waitMs: 7000 }],
    [429, { "retry-after": "7", ...spent }, { again: true, waitMs: 7000 }],
    [429, { "retry-after": "Thu, 15 Jan 2026 12:00:05 GMT" }, { again: true, waitMs: 5000 }],
    [403, spent, { again: true, waitMs: 90_000 }],
    [429, spent, { again: true, waitMs: 90_000 }],
    [429, {}, { again: true, waitMs: 60_000 }],
    [403, { ...spent, "x-ratelimit-reset": "0" }, { again: true, waitMs: 0 }],
    [403, { ...spent, "x-ratelimit-remaining": "1" }, {}],
    [403, {}, {}],
    [401, spent, {}],
  ])("answers %i with %j", async (status, headers, expected) => {
    const server = await startResourceServer();
    server.at("/repos/o/r/pulls/1", { status, headers: { date, ...headers } });
    const found = await observe(
      githubPrChecker({ egress: egressFor(), base: server.url }),
      "o/r#1",
    );
    const { kind, why, ...more } = found as Observation & { kind: "unknown" };
    expect([kind, why.startsWith(`answered with ${status}`), more]).toEqual([
      "unknown",
      true,
      expected,
    ]);
  });

  test("asks github.com where it is not told otherwise", async () => {
    const asked: string[] = [];
    const egress = createEgress({
      lookup: (hostname, _options, callback) => {
        asked.push(hostname);
        callback(null, [{ address: "127.0.0.1", family: 4 }]);
      },
    });
    const found = await observe(githubPrChecker({ egress }), "o/r#1");
    expect(asked).toEqual(["api.github.com"]);
    expect(found).toMatchObject({ why: expect.stringContaining("not public (loopback)") });
  });
});

describe("tokens", () => {
  const basic = `Basic ${Buffer.from(`me@example.com:${TOKEN}`).toString("base64")}`;
  test.each([
    ["with a user", { user: "me@example.com", token: TOKEN }, basic],
    ["alone", { token: TOKEN }, `Bearer ${TOKEN}`],
    ["not given", { user: "me@example.com" }, undefined],
  ])("%s", async (_, who, authorization) => {
    const server = await startResourceServer();
    const base = `${server.url}/api`;
    const egress = egressFor();
    await observe(confluenceChecker({ egress, base, ...who }), "1");
    await observe(jiraChecker({ egress, base, ...who }), "ABC-1");
    const sent = server.received.map(({ headers }) => headers.authorization);
    expect(sent).toEqual([authorization, authorization]);
  });

  test("stay with their API when it redirects elsewhere", async () => {
    const server = await startResourceServer();
    const other = await startResourceServer();
    const checkers = [
      [confluenceChecker({ egress: egressFor(), base: `${server.url}/a`, token: TOKEN }), "1"],
      [jiraChecker({ egress: egressFor(), base: `${server.url}/a`, token: TOKEN }), "ABC-1"],
      [githubPrChecker({ egress: egressFor(), base: `${server.url}/a`, token: TOKEN }), "o/r#1"],
    ] as const;
    for (const location of [`${other.url}/a/login`, "/b/login"]) {
      for (const path of [
        "/a/wiki/api/v2/pages/1",
        "/a/rest/api/3/issue/ABC-1?fields=updated,status,summary",
        "/a/repos/o/r/pulls/1",
      ]) {
        server.at(path, { status: 302, headers: { location } });
      }
      for (const [checker, id] of checkers) await observe(checker, id);
    }
    const elsewhere = [...server.received, ...other.received].filter(({ path }) =>
      path.endsWith("/login"),
    );
    expect(elsewhere.map(({ headers }) => headers.authorization)).toEqual(Array(6).fill(undefined));
  });

  test("that another origin answers for is unknown, also that something is gone", async () => {
    const server = await startResourceServer();
    const other = await startResourceServer();
    const location = `${other.url}/login`;
    server.at("/wiki/api/v2/pages/1", { status: 302, headers: { location } });
    const found = await observe(confluenceChecker({ egress: egressFor(), base: server.url }), "1");
    expect(found).toMatchObject({
      kind: "unknown",
      why: expect.stringContaining("another origin"),
    });
  });

  test("do not go over plain http to who is not on the allow-list", async () => {
    const checker = confluenceChecker({
      egress: egressFor([]),
      base: "http://93.184.216.34",
      token: TOKEN,
    });
    const found = await observe(checker, "1");
    expect(found).toMatchObject({
      kind: "unknown",
      why: expect.stringContaining("over plain http"),
    });
  });

  test.each([
    "confluence.example",
    "ftp://x",
    "https://u:hunter2@x",
    "https://x/?a=hunter2",
    "https://x/..%2f",
  ])("a base of %j is refused", (base) => {
    for (const make of [confluenceChecker, jiraChecker, githubPrChecker]) {
      expect(() => make({ egress: egressFor(), base })).toThrow(/^the base URL of \w+ /);
      expect(() => make({ egress: egressFor(), base })).not.toThrow(/hunter2/);
    }
  });
});
