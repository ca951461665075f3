import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { ObjectId } from "../../src/core/ids.js";
import type { JsonValue } from "../../src/core/json.js";
import { reflogEntryText } from "../../src/core/reflog-entry.js";
import { type CommitFields, decodeCommit, encodeCommit } from "../../src/objects/commit.js";
import { hashObject } from "../../src/objects/hash.js";
import { compileIsolation, isolationOfKey } from "../../src/objects/isolation.js";
import { freshLink } from "../support/object-store.js";

/** Values with the ids that they have for ever. A change here breaks every store and every export. */
const VALUES: [string, JsonValue, string][] = [
  ["null", null, "d5bca82837d5c7f796c97c31c5db9096058802e1fb1a94a37c06341b46eea159"],
  [
    "a small object",
    { b: [1, 2.5, "é"], a: true, "": null },
    "ad2cc419829f58ed96288f1d86672dd5873b5c41ecc5e0063c75cae53c9764b6",
  ],
  [
    "a string of 2,046 characters, the longest in one blob",
    "x".repeat(2046),
    "a6a5335fd7e18c344a6217ddc147c162f709be4a2cf616d602a87982b490b500",
  ],
  [
    "a string of one more, the shortest text",
    "x".repeat(2047),
    "d108ebedacf5a3a9886eb91a5526c68f4b2df4e14f20c53dfc5c15821b46d514",
  ],
  [
    "a text of lines",
    Array.from({ length: 900 }, (_, i) => `line ${i} ${"é𝒟"[i % 3]}\n`).join(""),
    "ed1c070484d298833fbb7d8624c62ce840be9760fd1026180c2d70601197539e",
  ],
  [
    "a list of numbers",
    Array.from({ length: 3000 }, (_, i) => i * i),
    "9680756b8de6f2c17f8ecdaf98d66d134e095986738094b8af68d1af3e7b1f13",
  ],
  [
    "a conversation",
    {
      messages: Array.from({ length: 400 }, (_, i) => ({
        role: "user",
        content: `${i}`.repeat(i % 300),
      })),
    },
    "42770e94bc675906b0607f5083123f44e2760d775b23d101f91b2d62851511d0",
  ],
  [
    "an object of 256 keys",
    Object.fromEntries(Array.from({ length: 256 }, (_, i) => [`key-${i}`, i])),
    "3dfc28b7deba638606da08042990d692182828f590bdb9d89bfe2d1906731d45",
  ],
  [
    "an object of 257 keys",
    Object.fromEntries(Array.from({ length: 257 }, (_, i) => [`key-${i}`, i])),
    "9aedbda5174ea42230e46ae33ab980675af4c689c9e546e5055e3ab601beb053",
  ],
  [
    "an object of 70,000 keys",
    Object.fromEntries(Array.from({ length: 70_000 }, (_, i) => [`k${i}`, 0])),
    "a76fc8c6a96b519797aec5cc48ed84b805794ff14c2049463957c8e48d8b62a3",
  ],
  [
    "hostile keys",
    Object.fromEntries(
      [
        ".git",
        "git~1",
        "a/b",
        "__proto__",
        "%",
        "[",
        '"',
        "{",
        "\u200d",
        "\u0000",
        "ключ",
        "x".repeat(2000),
      ].map((key) => [key, key]),
    ),
    "aad097d3a9b2310690fb5e169dc16d0ceca63364ef5e94892a656231d863bb3f",
  ],
];

describe("the format is frozen", () => {
  it.each(VALUES)("%s", (_name, value, id) => {
    expect(freshLink(value).id).toBe(id);
  });

  it("isolated values", () => {
    const policy = isolationOfKey(compileIsolation(["/state/user/email", "/state/m/*"]), "state");
    expect(freshLink({ user: { email: "a@example.org", n: 1 }, m: [1, 2] }, policy).id).toBe(
      "63a338683840380f7c0bccde4be704dc7dd2c7262d891e1da868ea975ea5f785",
    );
  });

  it("commits", () => {
    const id = (digit: string) => digit.repeat(64) as ObjectId;
    const body = encodeCommit({
      tree: id("1"),
      parents: [id("2"), id("3")],
      author: "booker",
      committer: "supervisor",
      workflow: "trip-42",
      authorTime: 1_700_000_000,
      committerTime: 1_700_000_001,
      nonce: "0123456789abcdef0123456789abcdef",
      nextStep: 13,
      inFlight: [11, 12],
      step: { number: 12, status: "completed", action: "write", input: id("4"), key: "k" },
      trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
      externalId: "x-1",
      message: "Book the flight\n\nTwo seats.",
    });
    expect(body.toString()).toBe(
      `tree ${id("1")}
parent ${id("2")}
parent ${id("3")}
author booker <booker@trip-42> 1700000000 +0000
committer supervisor <supervisor@trip-42> 1700000001 +0000
agstate-nonce 0123456789abcdef0123456789abcdef
agstate-next-step 13
agstate-in-flight 11,12
agstate-step 12
agstate-status completed
agstate-action write
agstate-input ${id("4")}
agstate-key k
agstate-trace 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
agstate-external-id x-1

Book the flight

Two seats.
`,
    );
    expect(hashObject("commit", body)).toBe(
      "1ed88949e7e9053a47cdc1e7bf5c5c5846a22f91cf8eac082fde60b7d5b29673",
    );
  });

  it("a commit that says why it was made", () => {
    const id = "1".repeat(64) as ObjectId;
    const fields: CommitFields = {
      tree: id,
      parents: [],
      author: "booker",
      committer: "booker",
      workflow: "trip-42",
      authorTime: 1_700_000_000,
      committerTime: 1_700_000_000,
      nonce: "0123456789abcdef0123456789abcdef",
      nextStep: 13,
      inFlight: [12],
      externalId: "x-1",
      reason: "memory-pressure",
      message: "memory is short",
    };
    const body = encodeCommit(fields);
    expect(body.toString()).toContain(
      "agstate-in-flight 12\nagstate-external-id x-1\nagstate-reason memory-pressure\n\nmemory",
    );
    expect(decodeCommit(body, id)).toEqual(fields);
    expect(hashObject("commit", body)).toBe(
      "467584fe7f6bb25e279a89c266f8a115183366507d52519f602fc5331a007a44",
    );
  });

  it("a commit that says the version of its state", () => {
    const body = encodeCommit({
      tree: "1".repeat(64) as ObjectId,
      parents: [],
      author: "booker",
      committer: "booker",
      workflow: "trip-42",
      authorTime: 1_700_000_000,
      committerTime: 1_700_000_000,
      nonce: "0123456789abcdef0123456789abcdef",
      nextStep: 13,
      inFlight: [12],
      stateVersion: 3,
      step: { number: 12, status: "started", action: "write" },
      message: "",
    });
    expect(hashObject("commit", body)).toBe(
      "d4d14f4d51ea16a6d60cddfcd5ebe231be12d30e3f7257fc41ddcb91b9a8cfe1",
    );
  });

  it("log entries", () => {
    const text = reflogEntryText({
      ref: "refs/heads/canonical",
      incarnation: "0".repeat(32),
      seq: 2,
      old: "1".repeat(64) as ObjectId,
      new: "2".repeat(64) as ObjectId,
      actor: "booker",
      reason: "commit",
      time: 1_700_000_000_123,
      trace: "",
      previous: "3".repeat(64) as ObjectId,
    });
    expect(createHash("sha256").update(text).digest("hex")).toBe(
      "3641ddc835ec87fdc06cd815f6e79fdaab80a6f9ddb33f97c81b0193585fb198",
    );
  });

  it("the first schema of the embedded store", () => {
    const sql = readFileSync(new URL("../../migrations/sqlite/0001-init.sql", import.meta.url));
    expect(createHash("sha256").update(sql).digest("hex")).toBe(
      "334c352d5390be4862ae399b17c092d01a1bb6f8ba9029c2e02c17b065572c43",
    );
  });
});
