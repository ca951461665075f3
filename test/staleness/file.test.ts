import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  appendFileSync,
  chmodSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { FILE_MAX_BYTES, fileChecker } from "../../src/staleness/checkers/file.js";
import type { Observation } from "../../src/staleness/types.js";
import { usually } from "../support/runs.js";

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** A root with a neighbour that nothing may be told of. */
function newRoot() {
  const folder = mkdtempSync(join(realpathSync(tmpdir()), "agstate-files-"));
  folders.push(folder);
  const root = join(folder, "root");
  const outside = join(folder, "outside");
  for (const each of [root, outside]) mkdirSync(each);
  writeFileSync(join(outside, "secret"), "secret");
  return { folder, root, outside };
}

const observe = (root: string, id: string, signal = new AbortController().signal) =>
  fileChecker({ root }).observe({ id, version: null }, { signal, now: Date.now });

const versionOf = (content: string | Buffer) =>
  `sha256:${createHash("sha256").update(content).digest("hex")}`;

const AT = { now: 0, observedAt: 0 };

const AWAY = {
  kind: "unknown",
  why: "refused: a symbolic link leads out of the root, or to nothing",
};
const GONE = { kind: "gone", why: "there is no such file" };

describe("the checker of files", () => {
  it("answers the SHA-256 of a file's content, whatever its size", async () => {
    const { root } = newRoot();
    mkdirSync(join(root, "a/b"), { recursive: true });
    for (const content of ["", "x", "é\n", Buffer.alloc(256 * 1024, 1), Buffer.alloc(700_000, 2)]) {
      writeFileSync(join(root, "a/b/c d.txt"), content);
      const size = Buffer.byteLength(content);
      expect(await observe(root, "a/b/c d.txt")).toEqual({
        kind: "version",
        version: versionOf(content),
        shown: `${size} bytes`,
      });
    }
    expect(await observe(root, "./a//b/c d.txt")).toMatchObject({ kind: "version" });
  });

  it("tells a file that is gone from a root that is", async () => {
    const { root, folder } = newRoot();
    writeFileSync(join(root, "file"), "");
    for (const id of ["nothing", "no/such/folder", "file/below"]) {
      expect([id, await observe(root, id)]).toEqual([id, GONE]);
    }
    expect(await observe(join(folder, "none"), "file")).toEqual({
      kind: "unknown",
      why: "the root of files is not there",
    });
  });

  it("refuses a path that is not below the root, before it looks at anything", async () => {
    const { root, outside } = newRoot();
    const refused = [
      "/etc/passwd",
      join(outside, "secret"),
      "..",
      "../outside/secret",
      "a/../../b",
    ];
    for (const id of [...refused, "a/..", "", "a\0b", "C:\\x", "\\\\host\\x", "a\\..\\b"]) {
      const { kind, why } = (await observe(root, id)) as Observation & { why: string };
      expect([id, kind, why.startsWith("refused: its path ")]).toEqual([id, "unknown", true]);
    }
  });

  it("follows links that stay below the root, and no others", async () => {
    const { root, outside, folder } = newRoot();
    mkdirSync(join(root, "real"));
    writeFileSync(join(root, "real/file"), "content");
    const links: [name: string, target: string][] = [
      ["in", "real/file"],
      ["folder", "real"],
      ["absolute", join(root, "real/file")],
      ["out", join(outside, "secret")],
      ["relative-out", "../outside/secret"],
      ["folder-out", outside],
      ["up", ".."],
      ["twice", "out"],
      ["dangling", "nothing"],
      ["dangling-out", join(outside, "nothing")],
      ["loop", "loop"],
      ["proc", "/proc/self/environ"],
    ];
    for (const [name, target] of links) symlinkSync(target, join(root, name));
    const found = { kind: "version", version: versionOf("content") };
    for (const id of ["in", "folder/file", "absolute"]) {
      expect(await observe(root, id)).toMatchObject(found);
    }
    const away = ["out", "relative-out", "folder-out/secret", "up/outside/secret", "twice", "proc"];
    // Not even whether it is there.
    const nowhere = ["dangling", "dangling-out", "folder-out/nothing", "out/below", "loop", "up"];
    for (const id of [...away, ...nowhere]) {
      expect([id, await observe(root, id)]).toEqual([id, AWAY]);
    }
    // The root itself may be one.
    symlinkSync(root, join(folder, "linked"));
    expect(await observe(join(folder, "linked"), "in")).toMatchObject(found);
  });

  it("reads only regular files, and never waits for what is none", async () => {
    const { root } = newRoot();
    expect(spawnSync("mkfifo", [join(root, "pipe")]).status).toBe(0);
    for (const id of ["pipe", "."]) {
      expect(await observe(root, id)).toEqual({ kind: "unknown", why: "it is no regular file" });
    }
    expect(await observe("/dev", "zero")).toEqual({
      kind: "unknown",
      why: "it is no regular file",
    });
  });

  it("does not take a file for empty that only seems to be", async () => {
    // The kernel says that it has no bytes, and gives some.
    expect(await observe("/proc/self", "status")).toMatchObject({ kind: "unknown", again: true });
  });

  it("reads files of at most 64 MiB", async () => {
    const { root } = newRoot();
    const path = join(root, "large");
    writeFileSync(path, "");
    truncateSync(path, FILE_MAX_BYTES);
    expect(await observe(root, "large")).toMatchObject({ kind: "version" });
    truncateSync(path, FILE_MAX_BYTES + 1);
    expect(await observe(root, "large")).toEqual({
      kind: "unknown",
      why: "it has 67108865 bytes, and files of at most 67108864 are read",
    });
  });

  it("does not know what it may not read", async () => {
    const { root, folder } = newRoot();
    writeFileSync(join(root, "closed"), "x");
    chmodSync(join(root, "closed"), 0);
    chmodSync(folder, 0o755);
    const closed = await asNobody(() => observe(root, "closed"));
    expect(closed).toEqual({ kind: "unknown", why: "it cannot be read (EACCES)", again: false });
  });

  const CHANGES: [what: string, change: (path: string) => void][] = [
    ["grows", (path) => appendFileSync(path, "y")],
    ["shrinks", (path) => truncateSync(path, 1)],
    ["is rewritten", (path) => writeFileSync(path, Buffer.alloc(statSync(path).size, 3))],
    ["is replaced", (path) => replaceWith(path, Buffer.alloc(statSync(path).size, 1))],
    ["is removed", (path) => rmSync(path)],
    ["goes away with its folder", (path) => renameSync(dirname(path), `${dirname(path)}.old`)],
    ["gives way, with its folder, to its like", (path) => giveWayWithFolder(path)],
    ["gives way to a link to its like", (path) => giveWay(path)],
  ];
  for (const [what, change] of CHANGES) {
    it(`takes no version of a file that ${what} while it is read`, async () => {
      const { root } = newRoot();
      mkdirSync(join(root, "folder"));
      const path = join(root, "folder/file");
      writeFileSync(path, Buffer.alloc(1_000_000, 1));
      utimesSync(path, 1, 1);
      // The signal is looked at before each piece: the second is where something happens.
      let looked = 0;
      const signal = {
        throwIfAborted() {
          if (++looked === 2) change(path);
        },
      } as AbortSignal;
      expect(await observe(root, "folder/file", signal)).toEqual({
        kind: "unknown",
        why: "it changed while it was read",
        again: true,
      });
      expect(looked).toBeGreaterThanOrEqual(2);
    });
  }

  it("stops where its time is over", async () => {
    const { root } = newRoot();
    writeFileSync(join(root, "file"), "x");
    const reason = new Error("time");
    await expect(observe(root, "file", AbortSignal.abort(reason))).rejects.toBe(reason);
  });

  it("knows a version of its own form only", () => {
    const { compare } = fileChecker({ root: "." });
    const [one, other] = [versionOf("1"), versionOf("2")];
    expect(compare?.(one, one, AT)).toBe("same");
    expect(compare?.(one, other, AT)).toBe("changed");
    for (const text of [one.toUpperCase(), `${one}0`, `${one}\n`, "etag:x"]) {
      expect(compare?.(text, text, AT)).toEqual({
        unknown: "the version on record is none of a file",
      });
    }
  });

  /** A tree of files and links, and what leads somewhere in it. */
  const names = fc.constantFrom("a", "b", "c");
  const ways = fc.array(names, { minLength: 1, maxLength: 3 }).map((parts) => parts.join("/"));
  const trees = fc.array(
    fc.oneof(
      fc.record({ path: ways, file: fc.constantFrom("one", "two") }),
      fc.record({
        path: ways,
        link: fc.oneof(
          ways,
          fc.tuple(fc.constantFrom("..", "../..", "."), ways).map((parts) => parts.join("/")),
          fc.constantFrom("../outside/secret", "../outside", "..", "/", "/etc/hostname", "."),
        ),
      }),
    ),
    { minLength: 1, maxLength: 10 },
  );

  it("never tells of anything outside, in any tree", async () => {
    const seen = new Set<string>();
    await fc.assert(
      fc.asyncProperty(
        trees,
        fc.array(ways, { minLength: 5, maxLength: 10 }),
        async (tree, ids) => {
          const { root, folder } = newRoot();
          for (const entry of tree) {
            const path = join(root, entry.path);
            try {
              mkdirSync(dirname(path), { recursive: true });
              if ("file" in entry) writeFileSync(path, entry.file, { flag: "wx" });
              else symlinkSync(entry.link, path);
            } catch {
              // Something else is there already, or a link has led elsewhere.
            }
          }
          for (const id of [...ids, ...tree.map((entry) => entry.path)]) {
            const observation = await observe(root, id);
            seen.add(observation.kind);
            let real: string | null = null;
            try {
              real = realpathSync(resolve(root, id));
            } catch {}
            const inside = real === root || real?.startsWith(`${root}/`);
            if (real !== null && inside && statSync(real).isFile()) {
              const { version } = observation as { version?: string };
              expect([versionOf("one"), versionOf("two")]).toContain(version);
            } else if (real !== null && inside) {
              expect(observation).toEqual({ kind: "unknown", why: "it is no regular file" });
            } else {
              expect([AWAY, GONE]).toContainEqual(observation);
              if (real !== null) expect(observation).toEqual(AWAY);
            }
          }
          rmSync(folder, { recursive: true });
        },
      ),
      { numRuns: usually(60, 3000) },
    );
    expect([...seen].sort()).toEqual(["gone", "unknown", "version"]);
  });
});

function replaceWith(path: string, content: Buffer): void {
  writeFileSync(`${path}.new`, content);
  utimesSync(`${path}.new`, 1, 1);
  renameSync(`${path}.new`, path);
}

/** Nothing of the file itself changes. */
function giveWayWithFolder(path: string): void {
  renameSync(dirname(path), `${dirname(path)}.old`);
  mkdirSync(dirname(path));
  replaceWith(path, Buffer.alloc(1_000_000, 1));
}

/** Another file with the same content is put elsewhere, and a link to it here. */
function giveWay(path: string): void {
  linkSync(path, `${path}.kept`);
  rmSync(path);
  replaceWith(`${path}.like`, Buffer.alloc(1_000_000, 1));
  symlinkSync(`${path}.like`, path);
}

/** Does something without the rights of root, who may read everything. */
async function asNobody<Output>(work: () => Promise<Output>): Promise<Output> {
  if (process.geteuid?.() !== 0) return work();
  process.seteuid?.(65_534);
  try {
    return await work();
  } finally {
    process.seteuid?.(0);
  }
}
