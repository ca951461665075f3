import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { BlockList, type LookupFunction } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import { notPublic, parseAddress } from "../../src/staleness/addresses.js";
import {
  type CredentialScope,
  checkCredentials,
  credentialsFor,
} from "../../src/staleness/credentials.js";
import {
  BODY_MAX_BYTES,
  createEgress,
  type Egress,
  type EgressOptions,
  EgressRefused,
} from "../../src/staleness/egress.js";
import { EgressUnusable } from "../../src/staleness/egress-body.js";
import { startResourceServer } from "../support/resource-server.js";
import { usually } from "../support/runs.js";

const SECRET = "Bearer s3cr3t-of-the-test";

/** A signal that never aborts; one each, as with any check. */
function never(): AbortSignal {
  return new AbortController().signal;
}

function egressWith(options: EgressOptions = {}): Egress {
  const egress = createEgress(options);
  onTestFinished(() => egress.close());
  return egress;
}

/** A resolver that gives these addresses, one list after the other; the last one for good. */
function resolving(...lists: string[][]): { lookup: LookupFunction; asked: string[] } {
  const asked: string[] = [];
  const lookup: LookupFunction = (hostname, _options, callback) => {
    asked.push(hostname);
    const list = lists[Math.min(asked.length, lists.length) - 1] ?? [];
    const found = list.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
    process.nextTick(() => callback(null, found));
  };
  return { lookup, asked };
}

function get(egress: Egress, url: string, more: { credentials?: readonly CredentialScope[] } = {}) {
  return egress.request({ url, signal: never(), ...more });
}

function withSecret(base: string): readonly CredentialScope[] {
  return checkCredentials([{ base, headers: { authorization: SECRET, "x-key": "k3y" } }]);
}

describe("addresses", () => {
  test.each([
    "http://127.0.0.1:PORT/",
    "http://0x7f.1:PORT/",
    "http://2130706433:PORT/",
    "http://0177.0.0.1:PORT/",
    "http://127.1:PORT/",
    "http://127.0.0.1.:PORT/",
    "http://0.0.0.0:PORT/",
    "http://[::1]:PORT/",
    "http://[::]:PORT/",
    "http://[::ffff:127.0.0.1]:PORT/",
    "http://[::ffff:7f00:1]:PORT/",
    "http://[::127.0.0.1]:PORT/",
    "http://[64:ff9b::127.0.0.1]:PORT/",
    "http://[64:ff9b:1::127.0.0.1]:PORT/",
    "http://[2002:7f00:1::]:PORT/",
    "http://[2001:0:7f00:1::1]:PORT/",
    "http://[fe80::1]:PORT/",
    "http://[fd00::1]:PORT/",
    "http://[fec0::1]:PORT/",
    "http://10.0.0.1:PORT/",
    "http://172.16.0.1:PORT/",
    "http://192.168.1.1:PORT/",
    "http://100.64.0.1:PORT/",
    "http://169.254.169.254/latest/meta-data/",
    "http://[fd00:ec2::254]/latest/meta-data/",
    "http://localhost:PORT/",
    "http://LOCALHOST:PORT/",
    "http://①②⑦.0.0.1:PORT/",
  ])("%s is not asked", async (template) => {
    const server = await startResourceServer();
    server.at("/", { status: 200, body: "inside" });
    const url = template.replace("PORT", String(server.port));
    await expect(get(egressWith(), url)).rejects.toThrow(EgressRefused);
    await expect(get(egressWith(), url)).rejects.toThrow(/not public/);
    expect(server.received).toEqual([]);
  });

  test.each([
    [["127.0.0.1"]],
    [["::1"]],
    [["::ffff:10.0.0.1"]],
    [["64:ff9b::a9fe:a9fe"]],
    [["93.184.216.34", "10.0.0.1"]],
    [["2606:4700::1", "fe80::1%eth0"]],
    [["127.0.0.1", "93.184.216.34"]],
    [["no address"]],
    [[]],
  ])("a name with the addresses %j is not asked", async (addresses) => {
    const server = await startResourceServer();
    const { lookup, asked } = resolving(addresses);
    const egress = egressWith({ lookup });
    await expect(get(egress, `http://wiki.example:${server.port}/`)).rejects.toThrow(EgressRefused);
    expect(asked).toEqual(["wiki.example"]);
    expect(server.received).toEqual([]);
  });

  test("a name is looked up once for a connection, and connected to what was checked", async () => {
    const server = await startResourceServer();
    server.at("/", { status: 200, body: "fine" });
    // What a check beforehand would have seen, and what the connection would then get.
    const { lookup, asked } = resolving(["127.0.0.1"], ["127.0.0.2"], ["169.254.169.254"]);
    const egress = egressWith({ lookup, allow: ["127.0.0.1"] });
    const url = `http://rebinding.example:${server.port}/`;
    expect((await get(egress, url)).status).toBe(200);
    expect(asked).toHaveLength(1);
    await egress.close();
    await expect(get(egress, url)).rejects.toThrow(/not public \(loopback\)/);
    await expect(get(egress, url)).rejects.toThrow(/not public \(linkLocal\)/);
    expect(server.received).toHaveLength(1);
  });

  test.each([
    ["127.0.0.1", "127.0.0.1", true],
    ["127.0.0.0/8", "127.0.0.1", true],
    ["::ffff:127.0.0.0/104", "127.0.0.1", true],
    ["127.0.0.1:PORT", "127.0.0.1", true],
    ["127.0.0.1:1", "127.0.0.1", false],
    ["127.0.0.1:1", "wiki.example", false],
    ["127.0.0.1:PORT", "wiki.example", true],
    ["10.0.0.0/8", "127.0.0.1", false],
    ["::/0", "127.0.0.1", false],
    ["wiki.example", "wiki.example", true],
    ["WIKI.example", "wiki.example.", true],
    ["wiki.example:PORT", "wiki.example", true],
    ["wiki.example:1", "wiki.example", false],
    ["wiki.example", "notwiki.example", false],
    ["example", "wiki.example", false],
    ["wiki.example", "127.0.0.1", false],
  ])("an allow-list of %s and a request to %s: %s", async (entry, host, allowed) => {
    const server = await startResourceServer();
    server.at("/", { status: 200 });
    const allow = [entry.replace("PORT", String(server.port))];
    const egress = egressWith({ allow, lookup: resolving(["127.0.0.1"]).lookup });
    const answer = get(egress, `http://${host}:${server.port}/`);
    if (allowed) expect((await answer).status).toBe(200);
    else await expect(answer).rejects.toThrow(EgressRefused);
    expect(server.received).toHaveLength(allowed ? 1 : 0);
  });

  test.each([
    "",
    "http://wiki.example",
    "wiki.example/x",
    "10.0.0.0/33",
    "a b",
    "x:0",
    "x:65536",
    "u@x",
  ])("an allow-list of %j is refused", (entry) => {
    expect(() => createEgress({ allow: [entry] })).toThrow(/^the allow-list has/);
  });
});

describe("public addresses", () => {
  // From IANA's registries of special-purpose addresses, by Node's own idea of a range.
  const special = new BlockList();
  for (const range of [
    "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24",
    "192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4",
  ].flatMap((line) => line.split(" "))) {
    const [first = "", bits] = range.split("/");
    special.addSubnet(first, Number(bits), "ipv4");
  }
  const hextets = (ip: string) => {
    const [a = 0, b = 0, c = 0, d = 0] = ip.split(".").map(Number);
    return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
  };
  const inside = ["10.1.2.3", "127.9.9.9", "169.254.169.254", "192.168.0.9", "172.31.0.1"];
  const ipV4 = fc.oneof(fc.ipV4(), fc.constantFrom(...inside));

  test("of IPv4 are those that no registry sets apart, in every form that reaches them", () => {
    fc.assert(
      fc.property(ipV4, (ip) => {
        for (const form of [ip, `::ffff:${ip}`, `::ffff:${hextets(ip)}`, `64:ff9b::${ip}`]) {
          const address = parseAddress(form);
          if (address === null) throw new Error(`${form} is an address`);
          // 192.31.196.0/24 and 192.52.193.0/24 are reached by all, and asked by nobody.
          if (/^192\.(31\.196|52\.193)\./.test(ip)) return;
          expect(notPublic(address) !== null, form).toBe(special.check(ip, "ipv4"));
        }
      }),
      { numRuns: usually(2000, 100_000) },
    );
  });

  test("of IPv6 are global unicast, and no tunnel to an address of IPv4", () => {
    const own = fc.constantFrom("fc00::", "fd12::", "fe80::", "fec0::", "ff02::", "100::", "::");
    fc.assert(
      fc.property(fc.oneof(fc.ipV6(), own), ipV4, (ip, v4) => {
        const tunnels = [`2002:${hextets(v4)}::1`, `2001:0:${hextets(v4)}::1`, `::${v4}`];
        for (const form of [...tunnels, `64:ff9b:1::${v4}`, `::ffff:0:${v4}`]) {
          expect(notPublic(parseAddress(form) as never), form).not.toBeNull();
        }
        const address = parseAddress(ip);
        const first = address?.kind() === "ipv6" ? (address.toByteArray()[0] ?? 0) : null;
        if (address !== null && first !== null && first >> 5 !== 1) {
          expect(notPublic(address), ip).not.toBeNull();
        }
      }),
      { numRuns: usually(2000, 100_000) },
    );
    expect(notPublic(parseAddress("2606:4700::1111") as never)).toBeNull();
  });
});

describe("URLs", () => {
  test.each([
    ["file:///etc/passwd", /only URLs of http and https/],
    ["ftp://example.com/", /only URLs of http and https/],
    ["data:text/plain,x", /only URLs of http and https/],
    ["not a url", /no URL/],
    ["//example.com/", /no URL/],
    ["https://user@example.com/", /holds a user or a password/],
    ["https://user:hunter2@example.com/", /holds a user or a password/],
  ])("%s is not asked", async (url, why) => {
    const error = await get(egressWith(), url).catch((thrown: Error) => thrown);
    expect(error).toBeInstanceOf(EgressRefused);
    expect((error as Error).message).toMatch(why);
    expect((error as Error).message).not.toContain("hunter2");
  });
});

describe("credentials", () => {
  test.each([
    ["/api", "/api", true],
    ["/api", "/api/", true],
    ["/api/", "/api/page?x=1", true],
    ["/api", "/api/a/../b", true],
    ["", "/anything", true],
    ["/api", "/apix", false],
    ["/api", "/API/x", false],
    ["/api", "/", false],
    ["/api", "/api/../x", false],
    ["/api", "/api/%2e%2e/x", false],
    ["/api", "/api/.%2E/x", false],
    ["/api", "/api\\..\\x", false],
    ["/api", "/api/%2e%2e%2fx", false],
    ["/api", "/api/..%2fx", false],
    ["/api", "/api/..%5cx", false],
    ["/api", "/api/%252e%252e/x", false],
    ["/api", "/api/..;/x", false],
    ["/api", "/api/.;a=1/x", false],
    ["/api", "/api//x", false],
    ["/api", "/x?/api/", false],
    ["/api", "/x#/api/", false],
  ])("those of %s and a request for %s: %s", async (base, path, sent) => {
    const server = await startResourceServer();
    const egress = egressWith({ allow: ["127.0.0.1"] });
    await get(egress, server.url + path, { credentials: withSecret(server.url + base) });
    expect(server.received.map(({ headers }) => headers.authorization)).toEqual([
      sent ? SECRET : undefined,
    ]);
    expect(JSON.stringify(server.received).includes("k3y")).toBe(sent);
  });

  test("never leave their base, whatever the path", () => {
    const segment = fc.oneof(
      fc.constantFrom(
        "api",
        "v1",
        "apix",
        ".",
        "..",
        "%2e",
        "%2E%2e",
        "%2f",
        "%5c",
        "..;x",
        "",
        "x",
      ),
      fc.string({ maxLength: 5, unit: "grapheme" }),
    );
    const scopes = withSecret("https://wiki.example/api/v1");
    let covered = 0;
    fc.assert(
      fc.property(
        fc.array(segment, { maxLength: 6 }),
        fc.constantFrom("/", "\\"),
        (path, slash) => {
          const text = `https://wiki.example/${path.join(slash)}`;
          fc.pre(URL.canParse(text));
          const url = new URL(text);
          if (credentialsFor(url, scopes) === undefined) return;
          covered += 1;
          // However often a server decodes it, and whichever slash it knows, it ends below the base.
          let read = url.pathname;
          for (let times = 0; times < 3; times++) {
            const segments: string[] = [];
            for (const part of read.split(/[/\\]/)) {
              if (part.split(";")[0] === "..") segments.pop();
              else if (part.split(";")[0] !== "." && part !== "") segments.push(part);
            }
            expect(segments.slice(0, 2)).toEqual(["api", "v1"]);
            read = read.replace(/%([0-9a-f]{2})/gi, (_, hex: string) =>
              String.fromCharCode(Number.parseInt(hex, 16)),
            );
          }
        },
      ),
      { numRuns: usually(3000, 100_000), examples: [[["api", "v1", "x"], "/"]] },
    );
    expect(covered).toBeGreaterThan(0);
  });

  test("of several, the ones with the longest base go", async () => {
    const server = await startResourceServer();
    const credentials = checkCredentials([
      { base: server.url, headers: { "x-token": "all" } },
      { base: `${server.url}/api/v1`, headers: { "x-token": "v1" } },
      { base: `${server.url}/api`, headers: { "x-token": "api" } },
    ]);
    const egress = egressWith({ allow: ["127.0.0.1"] });
    for (const path of ["/x", "/api/x", "/api/v1/x"]) {
      await get(egress, server.url + path, { credentials });
    }
    const tokens = server.received.map(({ headers }) => headers["x-token"]);
    expect(tokens).toEqual(["all", "api", "v1"]);
  });

  test("do not go to another origin that is asked directly", async () => {
    const server = await startResourceServer();
    const other = await startResourceServer();
    const egress = egressWith({ allow: ["127.0.0.1", "localhost"] });
    const credentials = withSecret(`${server.url}/api`);
    for (const origin of [other.url, `http://localhost:${server.port}`]) {
      await get(egress, `${origin}/api/x`, { credentials }).catch(() => {});
    }
    const asked = [...server.received, ...other.received];
    expect(asked.map(({ path }) => path)).toContain("/api/x");
    expect(asked.filter(({ headers }) => headers.authorization !== undefined)).toEqual([]);
  });

  test("take the place of what all requests have", async () => {
    const server = await startResourceServer();
    const headers = { "User-Agent": "known to the server", AUTHORIZATION: SECRET };
    const credentials = checkCredentials([{ base: server.url, headers }]);
    await get(egressWith({ allow: ["127.0.0.1"] }), server.url, { credentials });
    expect(server.received[0]?.headers).toMatchObject({
      "user-agent": "known to the server",
      authorization: SECRET,
    });
  });

  test("go over plain http only to hosts that the allow-list names", async () => {
    const server = await startResourceServer();
    const { lookup } = resolving(["127.0.0.1"]);
    const url = `http://wiki.example:${server.port}/`;
    const byRange = egressWith({ allow: ["127.0.0.0/8"], lookup });
    await expect(get(byRange, url, { credentials: withSecret(url) })).rejects.toThrow(
      /^wiki\.example is not asked: credentials would go to it over plain http/,
    );
    expect(server.received).toEqual([]);
    const byName = egressWith({ allow: ["wiki.example"], lookup });
    await get(byName, url, { credentials: withSecret(url) });
    expect(server.received[0]?.headers.authorization).toBe(SECRET);
  });

  test.each([
    [{ base: "ftp://x/", headers: {} }, /no URL of http/],
    [{ base: "https://u:hunter2@x/", headers: {} }, /holds a user or a password/],
    [{ base: "https://x/?k=hunter2", headers: {} }, /has a query/],
    [{ base: "https://x/%2e%2e%2f", headers: {} }, /encoded dots/],
    [{ base: "https://x/", headers: { "a b": "hunter2" } }, /cannot be sent/],
    [{ base: "https://x/", headers: { Host: "hunter2" } }, /cannot be sent/],
    [{ base: "https://x/", headers: { a: "hunter2\r\nb: c" } }, /no header can have/],
    [{ base: "https://x/", headers: { a: "" } }, /no header can have/],
    [{ base: "https://x/", headers: { a: "hunter2\u{1f600}" } }, /no header can have/],
  ])("%j are refused", (scope, why) => {
    expect(() => checkCredentials([scope as CredentialScope])).toThrow(why);
    expect(() => checkCredentials([scope as CredentialScope])).not.toThrow(/hunter2/);
  });
});

describe("redirects", () => {
  test.each([301, 302, 303, 307, 308])("%i is followed within the origin", async (status) => {
    const server = await startResourceServer();
    server.at("/api/a", { status, headers: { location: "b" }, body: "moved" });
    server.at("/api/b", { status, headers: { location: "/api/c?x=1" } });
    server.at("/api/c?x=1", { status: 200, body: "here" });
    const egress = egressWith({ allow: ["127.0.0.1"] });
    const answer = await egress.request({
      url: `${server.url}/api/a`,
      method: "HEAD",
      headers: { "if-none-match": '"1"' },
      credentials: withSecret(`${server.url}/api`),
      signal: never(),
    });
    expect([answer.status, answer.url]).toEqual([200, `${server.url}/api/c?x=1`]);
    for (const { method, headers } of server.received) {
      expect([method, headers.authorization, headers["if-none-match"]]).toEqual([
        "HEAD",
        SECRET,
        '"1"',
      ]);
    }
    expect(server.received).toHaveLength(3);
  });

  test("lead out of the base without credentials", async () => {
    const server = await startResourceServer();
    server.at("/api/a", { status: 302, headers: { location: "/api/%2e%2e/beside" } });
    server.at("/beside", { status: 200 });
    const egress = egressWith({ allow: ["127.0.0.1"] });
    await get(egress, `${server.url}/api/a`, { credentials: withSecret(`${server.url}/api`) });
    expect(server.received.map(({ path, headers }) => [path, headers.authorization])).toEqual([
      ["/api/a", SECRET],
      ["/beside", undefined],
    ]);
  });

  test("lead to another origin, and back, without credentials", async () => {
    const server = await startResourceServer();
    const other = await startResourceServer();
    server.at("/api/a", { status: 302, headers: { location: `${other.url}/api/b` } });
    other.at("/api/b", { status: 302, headers: { location: `${server.url}/api/c` } });
    server.at("/api/c", { status: 200 });
    const egress = egressWith({ allow: ["127.0.0.1"] });
    const credentials = [...withSecret(server.url), ...withSecret(other.url)];
    const answer = await get(egress, `${server.url}/api/a`, { credentials });
    expect([answer.status, answer.finalOrigin]).toEqual([200, server.url]);
    expect(server.received.map(({ headers }) => headers.authorization)).toEqual([
      SECRET,
      undefined,
    ]);
    expect(other.received.map(({ headers }) => headers.authorization)).toEqual([undefined]);
    expect(JSON.stringify(other.received)).not.toContain("k3y");
  });

  test.each([
    ["http://127.0.0.1:1/", /not public/],
    ["http://[::ffff:127.0.0.1]:1/", /not public/],
    ["http://169.254.169.254/latest/", /not public/],
    ["http://inside.example/", /not public/],
    ["file:///etc/passwd", /only URLs of http and https/],
    ["http://user:pw@public.example/", /holds a user or a password/],
    ["http://[", /redirects to what is no URL/],
  ])("to %s are not followed", async (location, why) => {
    const server = await startResourceServer();
    server.at("/", { status: 302, headers: { location } });
    const lookup: LookupFunction = (name, _options, callback) =>
      callback(null, [
        { address: name === "public.example" ? "127.0.0.1" : "10.0.0.1", family: 4 },
      ]);
    const egress = egressWith({ allow: ["public.example"], lookup });
    const error = get(egress, `http://public.example:${server.port}/`);
    await expect(error).rejects.toThrow(EgressRefused);
    await expect(error).rejects.toThrow(why);
    expect(server.received).toHaveLength(1);
  });

  test("end after five", async () => {
    const server = await startResourceServer();
    server.at("/loop", { status: 307, headers: { location: "/loop" } });
    for (let hop = 0; hop < 5; hop++) {
      server.at(`/${hop}`, { status: 307, headers: { location: `/${hop + 1}` } });
    }
    server.at("/5", { status: 200 });
    const egress = egressWith({ allow: ["127.0.0.1"] });
    expect((await get(egress, `${server.url}/0`)).status).toBe(200);
    server.received.length = 0;
    await expect(get(egress, `${server.url}/loop`)).rejects.toThrow(/more than 5 times/);
    expect(server.received).toHaveLength(6);
  });

  const hasOpenssl = spawnSync("openssl", ["version"]).status === 0;
  test.skipIf(!hasOpenssl)("from https to http are not followed", async () => {
    const tls = selfSigned();
    const server = await startResourceServer(tls);
    const plain = await startResourceServer();
    server.at("/same", { status: 302, headers: { location: "/here" } });
    server.at("/here", { status: 200, body: "over TLS" });
    server.at("/down", { status: 302, headers: { location: `${plain.url}/` } });
    const { lookup } = resolving(["127.0.0.1"]);
    const egress = egressWith({ allow: ["wiki.example", "127.0.0.1"], ca: tls.cert, lookup });
    const base = `https://wiki.example:${server.port}`;
    const credentials = withSecret(base);
    expect(String(await (await get(egress, `${base}/same`, { credentials })).body())).toBe(
      "over TLS",
    );
    await expect(get(egress, `${base}/down`, { credentials })).rejects.toThrow(
      /redirects from https to http/,
    );
    expect(plain.received).toEqual([]);
    expect(server.received.map(({ headers }) => headers.authorization)).toEqual(
      Array(3).fill(SECRET),
    );
    // The certificate is not for this name, and nobody says to trust it otherwise.
    await expect(get(egress, `${server.url}/here`)).rejects.toThrow();
    await expect(
      get(egressWith({ allow: ["wiki.example"], lookup }), `${base}/here`),
    ).rejects.toThrow(/self-signed/);
  });
});

describe("answers", () => {
  test("are asked for as they are, and from the origin", async () => {
    const server = await startResourceServer();
    await get(egressWith({ allow: ["127.0.0.1"] }), server.url);
    expect(server.received[0]?.headers).toMatchObject({
      "user-agent": expect.stringMatching(/^agstate\/\d+\.\d+\.\d+/),
      "accept-encoding": "identity",
      "cache-control": "no-cache",
    });
  });

  test.each([
    ["", (text: string) => text],
    ["gzip", gzipSync],
    ["br", brotliCompressSync],
  ])("encoded by %j are bounded as they come and decoded", async (encoding, encode) => {
    const server = await startResourceServer();
    const headers: Record<string, string> = encoding ? { "content-encoding": encoding } : {};
    server.at("/small", { status: 200, headers, body: encode("a".repeat(1000)) });
    server.at("/large", { status: 200, headers, body: encode("a".repeat(1001)) });
    server.at("/bomb", { status: 200, headers, body: encode("a".repeat(BODY_MAX_BYTES + 1)) });
    const egress = egressWith({ allow: ["127.0.0.1"] });
    const body = async (path: string, maxBytes?: number) => {
      const bound = maxBytes === undefined ? {} : { maxBytes };
      const answer = await egress.request({ url: server.url + path, signal: never(), ...bound });
      return await answer.body();
    };
    expect(String(await body("/small", 1000))).toBe("a".repeat(1000));
    await expect(body("/large", 1000)).rejects.toThrow(/larger than 1000 bytes/);
    await expect(body("/bomb")).rejects.toThrow(EgressUnusable);
  });

  test.each(["gzip", "compress", "gzip, br"])(
    "that are not encoded by %s are unusable",
    async (encoding) => {
      const server = await startResourceServer();
      server.at("/", { status: 200, headers: { "content-encoding": encoding }, body: "{}" });
      const answer = await get(egressWith({ allow: ["127.0.0.1"] }), server.url);
      await expect(answer.body()).rejects.toThrow(EgressUnusable);
    },
  );

  test("have bounded headers", async () => {
    const server = await startResourceServer();
    server.at("/", { status: 200, headers: { "x-long": "a".repeat(100_000) } });
    const code = "UND_ERR_HEADERS_OVERFLOW";
    await expect(get(egressWith({ allow: ["127.0.0.1"] }), server.url)).rejects.toMatchObject({
      code,
    });
  });

  test.each(["silent", "stalls", "drips"] as const)(
    "that are %s end with the signal",
    async (answer) => {
      const server = await startResourceServer();
      const begun = new AbortController();
      server.at("/", () => {
        setTimeout(() => begun.abort(new Error("the test's reason")), 30);
        return answer;
      });
      const egress = egressWith({ allow: ["127.0.0.1"] });
      const whole = egress
        .request({ url: server.url, signal: begun.signal })
        .then((one) => one.body());
      await expect(whole).rejects.toThrow("the test's reason");
    },
  );

  test("that nobody reads do not hold connections, or the check", async () => {
    const server = await startResourceServer();
    server.at("/drips", "drips");
    server.at("/small", { status: 200, body: "small" });
    server.at("/large", { status: 200, body: "a".repeat(10_000_000) });
    const egress = egressWith({ allow: ["127.0.0.1"], concurrency: 1 });
    for (const path of ["/small", "/large", "/drips", "/small"]) {
      const answer = await get(egress, server.url + path);
      expect(answer.status).toBe(200);
      answer.discard();
    }
  });

  test("come over as many connections as the concurrency, which are used again", async () => {
    const server = await startResourceServer();
    server.at("/", { status: 200, body: "{}" });
    const { lookup, asked } = resolving(["127.0.0.1"]);
    const egress = egressWith({ allow: ["127.0.0.1"], concurrency: 3, lookup });
    const url = `http://wiki.example:${server.port}/`;
    await Promise.all(Array.from({ length: 30 }, async () => (await get(egress, url)).body()));
    expect(server.received).toHaveLength(30);
    // Every connection looks the name up.
    expect(asked.length).toBeLessThanOrEqual(3);
  });
});

test("undici leaves the global fetch with what it had", async () => {
  const server = await startResourceServer();
  await get(egressWith({ allow: ["127.0.0.1"] }), server.url);
  const { Agent } = createRequire(import.meta.url)("undici") as typeof import("undici");
  const global = globalThis as unknown as Record<symbol, unknown>;
  expect(global[Symbol.for("undici.globalDispatcher.1")]).not.toBeInstanceOf(Agent);
});

function selfSigned(): { key: string; cert: string } {
  const directory = mkdtempSync(join(tmpdir(), "agstate-tls-"));
  try {
    const options =
      "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=wiki.example -addext subjectAltName=DNS:wiki.example -keyout key.pem -out cert.pem";
    execFileSync("openssl", options.split(" "), { cwd: directory, stdio: "ignore" });
    const read = (name: string) => readFileSync(join(directory, name), "utf8");
    return { key: read("key.pem"), cert: read("cert.pem") };
  } finally {
    rmSync(directory, { recursive: true });
  }
}
