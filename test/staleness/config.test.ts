import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { isAgstateError } from "../../src/index.js";
import { checkResources } from "../../src/staleness/check.js";
import { checkBounds, createCheckers, readCheckersFile } from "../../src/staleness/config.js";
import type { CheckerConfig } from "../../src/staleness/config-check.js";
import { git } from "../support/git.js";
import { startHttpService } from "../support/http-service.js";
import { variable } from "../support/regions.js";
import { agstateError } from "../support/stores.js";

const directory = mkdtempSync(join(tmpdir(), "agstate-checkers-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

let files = 0;
function fileOf(content: unknown): string {
  const path = join(directory, `checkers-${files++}.json`);
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
  return path;
}

const resource = (type: string, id: string, version: string) => ({
  type,
  id,
  version,
  tolerance: "exact" as const,
  observedAt: Date.now(),
  steps: [],
});

describe("a file of checkers", () => {
  it("says all that there is: secrets by variables, a root from where it stands, times as texts", async () => {
    const path = fileOf({
      root: "data",
      allow: ["wiki.internal", "localhost:8080", "10.0.0.0/8"],
      credentials: [
        { base: "https://example.com/a", headers: { Authorization: `Bearer ${variable("A")}` } },
      ],
      confluence: {
        base: "https://example.com",
        user: variable("USER"),
        token: variable("B"),
        api: "v1",
      },
      jira: { base: "https://example.com", token: "plain", api: "2" },
      github: { token: `x${variable("B")}` },
      timeout: "5s",
      total: "1m",
      skew: "500ms",
      retries: 0,
      concurrency: 8,
    });
    const config = await readCheckersFile(path, { A: "a", B: "b$&", USER: "u", PATH: "/bin" });
    expect(config).toEqual({
      root: join(directory, "data"),
      allow: ["wiki.internal", "localhost:8080", "10.0.0.0/8"],
      credentials: [{ base: "https://example.com/a", headers: { Authorization: "Bearer a" } }],
      confluence: { base: "https://example.com", user: "u", token: "b$&", api: "v1" },
      jira: { base: "https://example.com", token: "plain", api: "2" },
      github: { token: "xb$&" },
      searchPath: "/bin",
      timeoutMs: 5000,
      totalMs: 60_000,
      skewMs: 500,
      retries: 0,
      concurrency: 8,
    });
    expect(Object.keys(createCheckers(config)).sort()).toEqual([
      ...["confluence", "file", "git", "github-pr", "http", "jira"],
    ]);
    expect(checkBounds(config)).toEqual({
      timeoutMs: 5000,
      totalMs: 60_000,
      skewMs: 500,
      retries: 0,
      concurrency: 8,
    });
  });

  it("may say nothing", async () => {
    const config = await readCheckersFile(fileOf({}), {});
    expect(config).toEqual({});
    expect(Object.keys(createCheckers(config)).sort()).toEqual(["git", "github-pr", "http"]);
    expect(checkBounds(config)).toEqual({});
  });

  const REFUSED: [unknown, at: string][] = [
    [[], ""],
    [{ roots: "." }, "/roots"],
    [{ searchPath: "/bin" }, "/searchPath"],
    [{ timeoutMs: 5 }, "/timeoutMs"],
    [{ root: "" }, "/root"],
    [{ root: 1 }, "/root"],
    [{ allow: "localhost" }, "/allow"],
    [{ allow: ["localhost", "http://x"] }, "/allow/1"],
    [{ allow: [1] }, "/allow/0"],
    [{ credentials: {} }, "/credentials"],
    [{ credentials: [{}] }, "/credentials/0/base"],
    [{ credentials: [{ base: "https://h" }] }, "/credentials/0/headers"],
    [{ credentials: [{ base: "ftp://h", headers: {} }] }, "/credentials/0"],
    [{ credentials: [{ base: "https://h", headers: { a: 1 } }] }, "/credentials/0/headers/a"],
    [{ credentials: [{ base: "https://h", headers: { "a b": "x" } }] }, "/credentials/0"],
    [{ credentials: [{ base: "https://h", headers: {}, user: "u" }] }, "/credentials/0/user"],
    [{ confluence: {} }, "/confluence/base"],
    [{ confluence: { base: "https://u:p@h" } }, "/confluence/base"],
    [{ confluence: { base: "https://h", user: "u" } }, "/confluence/token"],
    [{ confluence: { base: "https://h", api: "v3" } }, "/confluence/api"],
    [{ confluence: { base: "https://h", password: "p" } }, "/confluence/password"],
    [{ jira: { base: 1 } }, "/jira/base"],
    [{ jira: { base: "https://h", api: "v2" } }, "/jira/api"],
    [{ github: { user: "u" } }, "/github/user"],
    [{ github: { base: "h" } }, "/github/base"],
    [{ github: { token: variable("NONE") } }, "/github/token"],
    [{ github: { token: "$" + "{A" } }, "/github/token"],
    [{ github: { token: "" } }, "/github/token"],
    [{ timeout: 5 }, "/timeout"],
    [{ timeout: "5" }, "/timeout"],
    [{ timeout: "0s" }, "/timeout"],
    [{ total: "100d" }, "/total"],
    [{ skew: "-1s" }, "/skew"],
    [{ retries: -1 }, "/retries"],
    [{ concurrency: 0 }, "/concurrency"],
    [{ concurrency: "8" }, "/concurrency"],
  ];
  for (const [given, at] of REFUSED) {
    it(`is refused with ${JSON.stringify(given)}, which is wrong at ${at || "the whole"}`, async () => {
      const path = fileOf(JSON.stringify(given, null, 2));
      const error = agstateError("INVALID_VALUE", { at, line: expect.any(Number) });
      await expect(readCheckersFile(path, { A: "hidden-value" })).rejects.toEqual(error);
      await expect(readCheckersFile(path, {})).rejects.toThrow(path);
    });
  }

  it("is refused where it cannot be read, is no JSON, or has a key twice", async () => {
    const none = readCheckersFile(join(directory, "none.json"), {});
    await expect(none).rejects.toEqual(agstateError("INVALID_ARGUMENT"));
    for (const text of ["{", '{"root":".","root":"."}', "\xff"]) {
      const bad = readCheckersFile(fileOf(text), {});
      await expect(bad).rejects.toEqual(agstateError("INVALID_VALUE"));
    }
    const large = readCheckersFile(fileOf(" ".repeat(1024 * 1024 + 1)), {});
    await expect(large).rejects.toEqual(agstateError("LIMIT_EXCEEDED"));
  });

  it("never tells a secret in an error", async () => {
    const secret = "hidden\nvalue";
    for (const config of [
      { credentials: [{ base: "https://h", headers: { Authorization: variable("S") } }] },
      { confluence: { base: "https://h", token: variable("S") } },
      { github: { token: variable("S") } },
    ]) {
      let told = "";
      try {
        createCheckers(await readCheckersFile(fileOf(config), { S: secret }));
      } catch (error) {
        expect(isAgstateError(error)).toBe(true);
        told = JSON.stringify(error) + (error as Error).stack;
      }
      expect(told).not.toBe("");
      expect(told).not.toContain("hidden");
    }
  });

  it("holds for a configuration in code, whose times are milliseconds", () => {
    const wrong: [unknown, string][] = [
      [{ timeout: "5s" }, "/timeout"],
      [{ timeoutMs: "5s" }, "/timeoutMs"],
      [{ github: { token: 1 } }, "/github/token"],
      [{ more: 1 }, "/more"],
    ];
    for (const [config, at] of wrong) {
      const error = agstateError("INVALID_VALUE", { at });
      expect(() => createCheckers(config as CheckerConfig)).toThrow(error);
    }
    // Here it is a text like any other.
    createCheckers({ github: { token: variable("NONE") } });
  });

  it("makes checkers that check: what is on disk, in a repository, and behind a URL", async () => {
    const data = join(directory, "data");
    mkdirSync(join(data, "work"), { recursive: true });
    writeFileSync(join(data, "file"), "x");
    const who = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
    git(data, ["init", "-q", "-b", "main", "work"]);
    git(join(data, "work"), [...who, "commit", "-q", "--allow-empty", "-m", "first"]);
    const head = git(join(data, "work"), ["rev-parse", "HEAD"]).trim();
    const { url, received } = await startHttpService((_, response) => {
      response.setHeader("etag", '"a"').end("x");
    });
    const path = fileOf({
      root: "data",
      allow: [url.slice("http://".length)],
      credentials: [{ base: `${url}/a`, headers: { Authorization: variable("A") } }],
    });
    const config = await readCheckersFile(path, { A: "Bearer a", PATH: process.env.PATH });
    const checked = await checkResources(
      [
        resource("file", "file", `sha256:${"0".repeat(64)}`),
        resource("git", "work#HEAD", head),
        resource("http", `${url}/a/b`, 'etag:"a"'),
        resource("jira", "A-1", "updated:x"),
      ],
      { checkers: createCheckers(config), ...checkBounds(config) },
    );
    expect(checked.map(({ verdict }) => verdict)).toEqual(["stale", "fresh", "fresh", "unknown"]);
    expect(received.map(({ headers }) => headers.authorization)).toEqual(["Bearer a"]);
  });
});
