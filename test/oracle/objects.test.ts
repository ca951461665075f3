import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ObjectId } from "../../src/core/ids.js";
import type { JsonValue } from "../../src/core/json.js";
import { exportWorkflow } from "../../src/git/export-workflow.js";
import { canonicalText } from "../../src/objects/canonical.js";
import { type CommitFields, decodeCommit, encodeCommit } from "../../src/objects/commit.js";
import { encodeValue, toLink } from "../../src/objects/encode.js";
import { type GitObjectType, hashObject, portableSha256Hex } from "../../src/objects/hash.js";
import { unescapeKey } from "../../src/objects/keys.js";
import { normalize } from "../../src/objects/normalize.js";
import { ObjectSink } from "../../src/objects/sink.js";
import { decodeTree } from "../../src/objects/tree.js";
import {
  git,
  gitBytes,
  gitLines,
  makeBareRepository,
  temporaryFolder,
  tryGit,
} from "../support/git.js";
import { agstateError, makeStore } from "../support/stores.js";

const folder = temporaryFolder();
const MAX = { maxBytes: 1 << 30 };

/** The ids that git gives to bodies of one type, in one process. */
function gitIds(type: GitObjectType, bodies: readonly Uint8Array[]): string[] {
  if (bodies.length === 0) return [];
  const repository = makeBareRepository(mkdtempSync(join(folder, "ids-")));
  const paths = bodies.map((body, i) => {
    const path = join(repository, `body-${i}`);
    writeFileSync(path, body);
    return path;
  });
  const args = ["hash-object", "-t", type, "--no-filters", "--stdin-paths"];
  return gitLines(repository, args, { input: paths.join("\n") });
}

/** Keys that are hostile to Git, to file systems, to sorting, and to our own marks. */
const HOSTILE_KEYS = [
  ...[".git", ".GIT", ".Git", ".git ", ".git.", "git~1", "GIT~1", ".git\u200c", ".GIT\u200c"],
  ...[".g\u200cit", "\u202e.git", ".git\ufeff", "\ufeff", "\ufeff.git", ".git::$INDEX_ALLOCATION"],
  ...[".gitmodules", ".gitattributes", ".gitmodules ", "gitmod~1", ".\u200cgitmodules"],
  ...[
    "",
    ".",
    "..",
    "...",
    "..git",
    "/",
    "//",
    "a/b",
    "/a",
    "a/",
    "../../etc/passwd",
    "\\",
    "a\\b",
  ],
  ...[
    "CON",
    "COM1",
    "aux",
    "nul.txt",
    "LPT1:",
    "a:b",
    "c:\\x",
    "*",
    "?",
    "<",
    ">",
    "|",
    "x ",
    " x",
  ],
  ...[
    "%",
    "%%",
    "%00",
    "%2F",
    "%e2",
    "~",
    "a~b",
    '"',
    "[",
    "]",
    "{",
    "}",
    "{00n1",
    "[00r1",
    '"00r1',
  ],
  ...["\u0000", "\n", "\r\n", "\t", "\u001f", "\u007f", "\u0080", "\u009f", "\u2028", "a\u0000b"],
  ...["😀", "\u{10ffff}", "\ue000", "\uffff", "ａ", "é", "e\u0301", "ß", "SS", "K", "ı", "I", "i"],
  ...["-", "--help", "-rf", "@", "@{0}", "HEAD", "refs", "__proto__", "constructor", "toString"],
  ...["a", "a.", "a-", "a0", "ab", "a b", "A", "0", "00", "1", "10", "2", "k".repeat(3072)],
  ...["é".repeat(1536), "\ufeff".repeat(341), "/".repeat(1024), "😀".repeat(768)],
];

const wellFormed = (text: string) => text.isWellFormed();
const keyArbitrary = fc.oneof(
  fc.constantFrom(...HOSTILE_KEYS),
  fc.string({ unit: "binary", maxLength: 8 }).filter(wellFormed),
  fc.string({ unit: fc.constantFrom(...'./\\%~[]{}"\u200c\ufeff gitG😀\ue000é'), maxLength: 8 }),
);
const textArbitrary = fc
  .tuple(
    fc.string({ unit: "grapheme", maxLength: 40 }),
    fc.constantFrom(1, 1, 30, 300),
    fc.boolean(),
  )
  .map(([text, times, lines]) => `${text}${lines ? "\n" : ""}`.repeat(times));
const leafArbitrary: fc.Arbitrary<JsonValue> = fc.oneof(
  fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.integer(), fc.boolean()),
  textArbitrary,
  fc.constantFrom(null, [], {}),
);
/** Small trees of values; wide objects and long lists hold leaves only, so that sizes stay small. */
const { value: valueArbitrary } = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    leafArbitrary,
    fc.array(tie("value"), { maxLength: 6 }),
    fc.dictionary(keyArbitrary, tie("value"), { maxKeys: 12 }),
    fc
      .array(leafArbitrary, { minLength: 1, maxLength: 6 })
      .map((list): JsonValue => new Array(40).fill(list).flat()),
    fc
      .integer({ min: 250, max: 700 })
      .map((n): JsonValue => Object.fromEntries(Array.from({ length: n }, (_, i) => [`k${i}`, i]))),
  ),
}));

describe("objects of random values, against git", () => {
  it("have the ids that git gives them; trees are sorted as git sorts them", () => {
    const property = fc.property(
      fc.array(valueArbitrary, { minLength: 30, maxLength: 30 }),
      (values) => {
        const sink = new ObjectSink();
        for (const value of values) toLink(sink, encodeValue(sink, normalize(value, MAX), null));
        const objects = sink.objects();
        for (const type of ["blob", "tree"] as const) {
          const own = objects.filter((object) => object.type === type);
          expect(own.map((o) => o.id)).toEqual(
            gitIds(
              type,
              own.map((o) => o.body),
            ),
          );
        }
        // git mktree sorts for itself, so it is given the entries the other way round.
        const trees = objects.filter((object) => object.type === "tree");
        const listings = trees.map((tree) => {
          const entries = decodeTree(tree.body as Buffer, tree.id).reverse();
          return entries
            .map(
              ({ name, type, id }) =>
                `${type === "tree" ? "040000 tree" : "100644 blob"} ${id}\t${name}\0`,
            )
            .join("");
        });
        const repository = makeBareRepository(mkdtempSync(join(folder, "trees-")));
        const made = gitLines(repository, ["mktree", "-z", "--missing", "--batch"], {
          input: listings.map((listing) => `${listing}\0`).join(""),
        });
        expect(made).toEqual(trees.map((tree) => tree.id));
      },
    );
    fc.assert(property, { numRuns: 12, interruptAfterTimeLimit: 60_000 });
  });

  it("have the ids that git gives to commits, whatever their fields", () => {
    const hex = (digits: number) =>
      fc.string({
        unit: fc.constantFrom(..."0123456789abcdef"),
        minLength: digits,
        maxLength: digits,
      });
    const id = hex(64) as fc.Arbitrary<ObjectId>;
    const line = fc
      .string({ unit: "grapheme", minLength: 1, maxLength: 20 })
      // biome-ignore lint/suspicious/noControlCharactersInRegex: what an identity may not hold
      .map((s) => s.replace(/[<>:\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, "").trim() || "x")
      .filter(wellFormed);
    const message = fc.string({ unit: "grapheme" }).map((s) => s.replaceAll("\0", ""));
    const time = fc.integer({ min: 0, max: 253_402_300_799 });
    const number = fc.integer({ min: 1, max: 1_000_000 });
    const fields: fc.Arbitrary<CommitFields> = fc
      .record({
        tree: id,
        parents: fc.array(id, { maxLength: 4 }),
        author: line,
        committer: line,
        workflow: line,
        authorTime: time,
        committerTime: time,
        nonce: hex(32),
        nextStep: number,
        inFlight: fc.array(number, { maxLength: 3 }),
        message,
        step: fc.option(
          fc.record({
            number,
            status: fc.constantFrom("started", "completed", "failed"),
            action: fc.constantFrom("read", "inference", "write", "execute"),
            input: hex(64),
            key: hex(32),
          }),
        ),
        trace: fc.option(line),
        externalId: fc.option(line),
      })
      .map(
        ({ step, trace, externalId, ...rest }) =>
          ({
            ...rest,
            ...(step && { step }),
            ...(trace && { trace }),
            ...(externalId && { externalId }),
          }) as CommitFields,
      );
    const property = fc.property(fc.array(fields, { minLength: 60, maxLength: 60 }), (commits) => {
      const bodies = commits.map(encodeCommit);
      const ids = bodies.map((body) => hashObject("commit", body));
      expect(ids).toEqual(gitIds("commit", bodies));
      expect(bodies.map((body, i) => decodeCommit(body, ids[i]!))).toEqual(commits);
    });
    fc.assert(property, { numRuns: 5 });
  });

  it("are hashed alike by the portable SHA-256", () => {
    const sizes = [0, 1, 55, 56, 63, 64, 65, 1000, 16_384, 100_000];
    const bodies = sizes.map((size) => Buffer.alloc(size, "agstate "));
    const headed = bodies.map((body) =>
      Buffer.concat([Buffer.from(`blob ${body.length}\0`), body]),
    );
    expect(headed.map(portableSha256Hex)).toEqual(gitIds("blob", bodies));
    expect(bodies.map((body) => hashObject("blob", body))).toEqual(gitIds("blob", bodies));
  });
});

describe("hostile keys, against git", () => {
  /** A state with an entry for each key, as a tree whatever the size; and trees below each. */
  const state = Object.fromEntries([
    ...HOSTILE_KEYS.map((key, i) => [key, i] as const),
    ["trees", Object.fromEntries(HOSTILE_KEYS.map((key, i) => [key, { [key]: i }]))],
  ]);

  it("pass fsck --strict after an export and in a bare clone, and mean the same there", async () => {
    const { store } = await makeStore("memory");
    const workflow = await store.createWorkflow("w", {
      state,
      isolation: ["/state/*", "/state/trees/*/*"],
    });
    const directory = join(mkdtempSync(join(folder, "hostile-")), "repository.git");
    await exportWorkflow(workflow, directory);
    const clone = `${directory}.clone`;
    git(folder, ["clone", "--quiet", "--bare", "--no-local", directory, clone]);
    for (const repository of [directory, clone]) {
      const fsck = tryGit(repository, ["fsck", "--strict", "--full"]);
      expect({ status: fsck.status, said: fsck.stderr }).toEqual({ status: 0, said: "" });
      const entries = git(repository, ["ls-tree", "-z", "canonical:state"])
        .split("\0")
        .slice(0, -1);
      const found = entries.map((entry) => {
        const [head, name] = entry.split("\t");
        return [unescapeKey(name!), head!.split(" ")[2]] as const;
      });
      expect(new Set(found.map(([key]) => key))).toEqual(new Set(Object.keys(state)));
      const blobs = found.filter(([key]) => key !== "trees");
      const output = gitBytes(repository, ["cat-file", "--batch=%(objectsize)"], {
        input: blobs.map(([, id]) => id).join("\n"),
      });
      const expected = blobs
        .map(([key]) => canonicalText(state[key] as JsonValue))
        .map((text) => `${text.length}\n${text}\n`);
      expect(output.toString()).toBe(expected.join(""));
    }
    expect(await workflow.stateAt("canonical")).toEqual(state);
  });

  it.each(["k".repeat(3073), "é".repeat(1537), "\ufeff".repeat(342), `${"/".repeat(1024)}x`])(
    "are refused when one byte longer than 3,072, %#",
    async (key) => {
      const { store } = await makeStore("memory");
      await expect(store.createWorkflow("w", { state: { [key]: 1 } })).rejects.toThrow(
        agstateError("LIMIT_EXCEEDED", { limit: 3072 }),
      );
    },
  );

  it("keep their entries apart in any object, and come back", async () => {
    const property = fc.asyncProperty(
      fc.dictionary(keyArbitrary, fc.integer(), { minKeys: 1, maxKeys: 40 }),
      async (object) => {
        const sink = new ObjectSink();
        const padded = { ...object, pad: "x".repeat(3000) };
        const { id } = toLink(sink, encodeValue(sink, normalize(padded, MAX), null));
        const tree = sink.objects().find((o) => o.id === id)!;
        const entries = decodeTree(tree.body as Buffer, id);
        expect(new Set(entries.map((e) => unescapeKey(e.name)))).toEqual(
          new Set(Object.keys(padded)),
        );
        expect(entries.length).toBe(Object.keys(padded).length);
      },
    );
    await fc.assert(property, { numRuns: 300 });
  });
});
