import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { gitChecker } from "../../src/staleness/checkers/git.js";
import { createEgress } from "../../src/staleness/egress.js";
import { git, temporaryFolder } from "../support/git.js";

const folder = temporaryFolder();
const WHO = ["-c", "user.name=a", "-c", "user.email=a@example.com"];

/** Answers below `/odd/` that are none of Git's; by their name. */
const ODD: Record<string, (response: ServerResponse) => void> = {
  html: (response) => response.setHeader("content-type", "text/html").end("<html>"),
  dumb: (response) => response.end(`${"1".repeat(40)}\trefs/heads/main\n`),
  cut: (response) => smart(response).end("001e# service=git-upload-pack\n0000"),
  error: (response) =>
    smart(response).end(`001e# service=git-upload-pack\n00000010ERR no such0000`),
  closed: (response) => response.writeHead(401).end(),
  hidden: (response) => response.writeHead(403).end(),
  busy: (response) => response.writeHead(503, { "retry-after": "7" }).end(),
  cached: (response) => smart(response).setHeader("age", "60").end(),
  unmodified: (response) => response.writeHead(304).end(),
  away: (response) => response.writeHead(302, { location: "http://10.0.0.1/x.git" }).end(),
};

function smart(response: ServerResponse): ServerResponse {
  return response.setHeader("content-type", "application/x-git-upload-pack-advertisement");
}

/** Git's own server, as a web server runs it. */
async function serveByGit(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname, search } = new URL(request.url ?? "", "http://host");
  const backend = spawn("git", ["http-backend"], {
    env: {
      PATH: process.env.PATH,
      GIT_PROJECT_ROOT: folder,
      GIT_HTTP_EXPORT_ALL: "1",
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_CONFIG_GLOBAL: "/dev/null",
      PATH_INFO: pathname,
      QUERY_STRING: search.slice(1),
      REQUEST_METHOD: request.method,
      ...(request.headers["git-protocol"] && {
        GIT_PROTOCOL: String(request.headers["git-protocol"]),
      }),
    },
  });
  backend.stdin.end();
  const parts: Buffer[] = [];
  for await (const part of backend.stdout) parts.push(part as Buffer);
  const answer = Buffer.concat(parts);
  const end = answer.indexOf("\r\n\r\n");
  for (const line of answer.toString("latin1", 0, end).split("\r\n")) {
    const [, name = "", value = ""] = /^([^:]+): *(.*)$/.exec(line) ?? [];
    if (name === "Status") response.statusCode = Number.parseInt(value, 10);
    else response.setHeader(name, value);
  }
  response.end(answer.subarray(end + 4));
}

const asked: { url: string | undefined; authorization: string | undefined }[] = [];
const server = createServer((request, response) => {
  const { url, headers } = request;
  asked.push({ url, authorization: headers.authorization });
  const odd = ODD[/^\/odd\/(\w+)\/info/.exec(url ?? "")?.[1] ?? ""];
  if (odd === undefined) void serveByGit(request, response);
  else odd(response);
});
let base = "";
let host = "";
beforeAll(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  base = `http://${host}`;
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await once(server, "close");
});

function observing(more: object = {}) {
  const egress = createEgress({ allow: [host] });
  const checker = gitChecker({ remote: { egress, ...more } });
  const context = { signal: new AbortController().signal, now: Date.now };
  return (id: string) => checker.observe({ id, version: null }, context);
}

describe("the checker of Git's refs, in repositories elsewhere", () => {
  it("answers the id that a ref is at, as git serves it", async () => {
    for (const format of ["sha1", "sha256"]) {
      const path = join(folder, `${format}.git`);
      git(folder, ["init", "-q", "-b", "main", `--object-format=${format}`, path]);
      git(path, [...WHO, "commit", "-q", "--allow-empty", "-m", "first"]);
      git(path, [...WHO, "tag", "-a", "v1", "-m", "one"]);
      const observe = observing();
      const refs = ["HEAD", "refs/heads/main", "refs/tags/v1"];
      for (const ref of refs) {
        const version = git(path, ["rev-parse", ref]).trim();
        const shown = `${ref} at ${version.slice(0, 12)}`;
        const found = { kind: "version", version, shown };
        expect(await observe(`${base}/${format}.git#${ref}`)).toEqual(found);
        expect(await observe(`${base}/${format}.git/#${ref}`)).toEqual(found);
      }
      git(path, [...WHO, "commit", "-q", "--allow-empty", "-m", "second"]);
      const version = git(path, ["rev-parse", "HEAD"]).trim();
      const moved = await observe(`${base}/${format}.git#refs/heads/main`);
      expect(moved).toMatchObject({ kind: "version", version });
      expect(await observe(`${base}/${format}.git#refs/heads/mai`)).toEqual({
        kind: "gone",
        why: "there is no refs/heads/mai",
      });
    }
    expect(await observing()(`${base}/none.git#HEAD`)).toMatchObject({ kind: "gone" });
    const paths = new Set(asked.map(({ url }) => url?.replace(/^\/[a-z0-9]+\.git/, "")));
    expect([...paths]).toEqual(["/info/refs?service=git-upload-pack"]);
  });

  const UNKNOWN: Record<string, string> = {
    html: "answered with something else than Git's smart protocol",
    dumb: "answered with something else than Git's smart protocol",
    cut: "answered with what is no whole list of Git's refs",
    error: "answered with what is no whole list of Git's refs",
    closed: "answered with 401: it needs credentials that it knows",
    hidden: "answered with 403: these credentials may not see it",
    busy: "answered with 503",
    cached: "a cache's answer, 60 s old",
    unmodified: "answered with 304, without content",
    away: "10.0.0.1 is not asked: its address is not public (private); the allow-list can name it",
  };
  for (const [name, why] of Object.entries(UNKNOWN)) {
    it(`does not know by an answer that is ${name}`, async () => {
      const found = await observing()(`${base}/odd/${name}#HEAD`);
      expect(found).toMatchObject({ kind: "unknown", why });
      if (name === "busy") expect(found).toMatchObject({ again: true, waitMs: 7000 });
    });
  }

  it("sends credentials to what lies below their base, and nowhere else", async () => {
    const headers = { authorization: "Basic c2VjcmV0" };
    const observe = observing({ credentials: [{ base: `${base}/odd`, headers }] });
    asked.length = 0;
    await observe(`${base}/odd/html#HEAD`);
    await observe(`${base}/oddly/html#HEAD`);
    expect(asked.map(({ authorization }) => authorization)).toEqual([
      headers.authorization,
      undefined,
    ]);
  });

  it("asks nothing that a URL must not hold, and no address that is not public", async () => {
    asked.length = 0;
    const observe = observing();
    const egress = createEgress();
    const guarded = gitChecker({ remote: { egress } });
    const context = { signal: new AbortController().signal, now: Date.now };
    for (const found of [
      await observe(`http://user:secret@${host}/a#HEAD`),
      await observe(`${base}/a?service=x#HEAD`),
      await observe("http://#HEAD"),
      await guarded.observe({ id: `${base}/sha1.git#HEAD`, version: null }, context),
      await gitChecker({}).observe({ id: `${base}/sha1.git#HEAD`, version: null }, context),
    ]) {
      expect(found.kind).toBe("unknown");
      expect(JSON.stringify(found)).not.toContain("secret");
    }
    expect(asked).toEqual([]);
  });
});
