import { createHash, randomBytes } from "node:crypto";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import type { ObjectId } from "../../src/core/ids.js";
import { type ExportedRef, exportRepository } from "../../src/git/export.js";
import type { PackObject } from "../../src/git/pack.js";
import { packIndex } from "../../src/git/pack-index.js";
import { fakeId } from "../support/dag.js";
import {
  git,
  gitBytes,
  gitLines,
  makeBareRepository,
  temporaryFolder,
  tryGit,
} from "../support/git.js";

const folder = temporaryFolder();
const HEAD = "refs/heads/canonical";

function freshPath(): string {
  return join(mkdtempSync(join(folder, "export-")), "repository.git");
}

function blob(body: Uint8Array): PackObject {
  const id = createHash("sha256").update(`blob ${body.length}\0`).update(body).digest("hex");
  return { id: id as ObjectId, type: "blob", body };
}

async function* streamOf(objects: readonly PackObject[]): AsyncGenerator<PackObject> {
  yield* objects;
}

/** All files below a folder with their bytes, and all folders. */
function snapshot(directory: string): Map<string, string> {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true });
  const found = entries.map((entry): [string, string] => {
    const path = join(entry.parentPath, entry.name);
    return [path, entry.isDirectory() ? "folder" : readFileSync(path, "hex")];
  });
  return new Map(found.sort());
}

/** A repository that real git made: merges, an octopus, tags, subfolders, bodies of all sizes. */
function makeSource(): string {
  const directory = makeBareRepository(freshPath());
  const sizes = [0, 1, 15, 16, 2047, 2048, 65_535, 65_536, 300_000, 2_000_000];
  const lines: (string | Buffer)[] = [];
  const add = (text: string) => lines.push(`${text}\n`);
  const commit = (ref: string, mark: number, from: number[], files: [string, Buffer][]) => {
    add(`commit ${ref}\nmark :${mark}\ncommitter a <a@b> ${1_700_000_000 + mark} +0000\ndata 1\nm`);
    from.forEach((parent, i) => {
      add(`${i === 0 ? "from" : "merge"} :${parent}`);
    });
    for (const [path, body] of files) {
      add(`M 100644 inline ${path}\ndata ${body.length}`);
      lines.push(body, "\n");
    }
    add("");
  };
  commit(
    HEAD,
    1,
    [],
    sizes.map((size) => [`random/${size}`, randomBytes(size)]),
  );
  commit(
    HEAD,
    2,
    [1],
    sizes.map((size) => [`a/b/c/${size}`, Buffer.alloc(size, "text ")]),
  );
  commit("refs/heads/agents/a/x", 3, [1], [["state/k", Buffer.from("1")]]);
  commit("refs/heads/agents/b/y", 4, [1], [["state/é", Buffer.from("2")]]);
  commit("refs/audit/workflow", 5, [], [["declarations", Buffer.from("{}")]]);
  commit(HEAD, 6, [2, 3, 4], [["state/k", Buffer.from("3")]]);
  add(`reset refs/tags/s1\nfrom :2\n\nreset refs/tags/𐀀\nfrom :3\n\nreset refs/tags/｡\nfrom :4\n`);
  git(directory, ["fast-import", "--quiet"], {
    input: Buffer.concat(lines.map((line) => Buffer.from(line))),
  });
  return directory;
}

function refsOf(directory: string): ExportedRef[] {
  return gitLines(directory, ["for-each-ref", "--format=%(objectname) %(refname)"]).map((line) => {
    const [id, name] = line.split(" ");
    return { id: id as ObjectId, name: name! };
  });
}

const ALL_OBJECTS = ["cat-file", "--batch-all-objects", "--batch"];

/** Every object of a repository, as `git cat-file` tells them. */
function objectsOf(directory: string): PackObject[] {
  const output = gitBytes(directory, ALL_OBJECTS);
  const objects: PackObject[] = [];
  for (let at = 0; at < output.length; ) {
    const end = output.indexOf("\n", at);
    const [id, type, size] = output.toString("utf8", at, end).split(" ");
    const body = output.subarray(end + 1, end + 1 + Number(size));
    objects.push({ id: id as ObjectId, type: type as PackObject["type"], body });
    at = end + 2 + Number(size);
  }
  return objects;
}

function expectSound(directory: string): void {
  const fsck = tryGit(directory, ["fsck", "--strict", "--full", "--no-dangling"]);
  // Git gives notice of a repository whose HEAD is yet to be born, which is no fault.
  const said = `${fsck.stdout}${fsck.stderr}`.replace(/^notice: .*\n/gm, "");
  expect({ status: fsck.status, said }).toEqual({ status: 0, said: "" });
}

let source: string;
let objects: PackObject[];
let refs: ExportedRef[];
beforeAll(() => {
  source = makeSource();
  objects = objectsOf(source);
  refs = refsOf(source);
});

function exportSource(directory: string) {
  // In no particular order, and one of them twice.
  const stream = streamOf([...objects.toReversed(), objects[0]!]);
  return exportRepository({ directory, refs: refs.toReversed(), head: HEAD, objects: stream });
}

describe("an exported repository, read by git", () => {
  it("is sound, and holds the same objects, refs and history", async () => {
    const directory = freshPath();
    const result = await exportSource(directory);
    expect(result).toEqual({ objects: objects.length, refs: refs.length });

    expectSound(directory);
    const questions = [
      ["rev-parse", "--is-bare-repository", "--show-object-format"],
      ["symbolic-ref", "HEAD"],
      ["for-each-ref"],
      ["rev-list", "--all", "--objects"],
      ["log", "--graph", "--all", "--stat"],
      ["show-ref", "--head"],
    ];
    for (const question of questions) {
      expect(git(directory, question)).toBe(git(source, question));
    }
    expect(gitBytes(directory, ALL_OBJECTS).equals(gitBytes(source, ALL_OBJECTS))).toBe(true);
  });

  it("has the very index and packed-refs that git writes", async () => {
    const directory = freshPath();
    await exportSource(directory);
    const packs = join(directory, "objects/pack");
    const pack = readdirSync(packs).find((name) => name.endsWith(".pack"))!;
    const index = pack.replace(/pack$/, "idx");
    expect(readdirSync(packs).sort()).toEqual([index, pack]);
    expect(statSync(join(packs, pack)).mode & 0o777).toBe(0o444);
    git(directory, ["verify-pack", join(packs, pack)]);

    const indexByGit = join(folder, "by-git.idx");
    git(directory, ["index-pack", "-o", indexByGit, join(packs, pack)]);
    expect(readFileSync(join(packs, index)).equals(readFileSync(indexByGit))).toBe(true);

    git(source, ["pack-refs", "--all"]);
    const packedRefs = (repository: string) =>
      readFileSync(join(repository, "packed-refs"), "utf8");
    expect(packedRefs(directory)).toBe(packedRefs(source));
  });

  it("can be cloned, and written to", async () => {
    const directory = freshPath();
    await exportSource(directory);
    const clone = freshPath();
    git(folder, ["clone", "--quiet", "--bare", "--no-local", directory, clone]);
    expectSound(clone);
    expect(git(clone, ["rev-parse", HEAD])).toBe(git(source, ["rev-parse", HEAD]));
    git(directory, ["update-ref", "refs/heads/new", HEAD]);
    git(directory, ["repack", "-adq"]);
    expectSound(directory);
  });

  it("may have no objects and no refs", async () => {
    const directory = freshPath();
    const result = await exportRepository({
      directory,
      refs: [],
      head: HEAD,
      objects: streamOf([]),
    });
    expect(result).toEqual({ objects: 0, refs: 0 });
    expect(git(directory, ["symbolic-ref", "HEAD"])).toBe(`${HEAD}\n`);
    expect(git(directory, ["count-objects"])).toBe("0 objects, 0 kilobytes\n");
    expect(git(directory, ["for-each-ref"])).toBe("");
    expect(readdirSync(join(directory, "objects/pack"))).toEqual([]);
  });

  it("may have more than 65,536 objects", async () => {
    const directory = freshPath();
    const count = 66_000;
    async function* many() {
      for (let i = 0; i < count; i++) yield blob(Buffer.from(`${i}`));
    }
    await exportRepository({ directory, refs: [], head: HEAD, objects: many() });
    expectSound(directory);
    expect(git(directory, ["count-objects", "-v"])).toContain(`in-pack: ${count}\n`);
  });

  it("may have a pack of more than two GiB: its index is what git reads back", () => {
    const offsets = [12, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x1_0000_0000, 2 ** 40 + 7];
    const entries = offsets.map((offset, i) => ({ id: fakeId(i), offset, crc: i }));
    const read = gitLines(folder, ["show-index", "--object-format=sha256"], {
      input: packIndex(entries.toReversed(), Buffer.alloc(32)),
    });
    expect(read).toEqual(
      entries.map(
        ({ id, offset, crc }) => `${offset} ${id} (${crc.toString(16).padStart(8, "0")})`,
      ),
    );
  });

  it("is written while its objects are read, a few at a time", async () => {
    const directory = freshPath();
    const BODY_BYTES = 1024 * 1024;
    let given = 0;
    async function* large() {
      for (let i = 0; i < 8; i++) {
        const packs = join(directory, "objects/pack");
        const [pack] = readdirSync(packs);
        expect(statSync(join(packs, pack!)).size).toBeGreaterThan(given - 2 * BODY_BYTES);
        given += BODY_BYTES;
        yield blob(randomBytes(BODY_BYTES));
      }
    }
    await exportRepository({ directory, refs: [], head: HEAD, objects: large() });
    expect(given).toBe(8 * BODY_BYTES);
    expectSound(directory);
  });
});

describe("the target of an export", () => {
  it("may be an empty folder, or one that is yet to be made with those above it", async () => {
    const empty = freshPath();
    mkdirSync(empty);
    await exportSource(empty);
    expectSound(empty);
    const deep = join(freshPath(), "x/y");
    await exportSource(deep);
    expectSound(deep);
  });

  it("may be a fresh bare SHA-256 repository, whose config and hooks stay as they are", async () => {
    const directory = freshPath();
    git(folder, ["init", "--quiet", "--bare", "--object-format=sha256", directory]);
    git(directory, ["config", "user.name", "a"]);
    mkdirSync(join(directory, "hooks"), { recursive: true });
    writeFileSync(join(directory, "hooks/reference-transaction"), "#!/bin/sh\nexit 1\n", {
      mode: 0o755,
    });
    const before = snapshot(directory);
    await exportSource(directory);
    expectSound(directory);
    expect(git(directory, ["symbolic-ref", "HEAD"])).toBe(`${HEAD}\n`);
    const after = snapshot(directory);
    for (const [path, content] of before) {
      if (path !== join(directory, "HEAD")) expect(after.get(path)).toBe(content);
    }
  });

  const unfit: Record<string, (directory: string) => void> = {
    "a file": (path) => writeFileSync(path, ""),
    "below a file": (path) => writeFileSync(join(path, ".."), ""),
    "a folder with a file": (path) => {
      mkdirSync(path);
      writeFileSync(join(path, "notes.txt"), "mine");
    },
    "a repository of the SHA-1 format": (path) => git(folder, ["init", "-q", "--bare", path]),
    "a repository with a working tree": (path) =>
      git(folder, ["init", "-q", "--object-format=sha256", path]),
    "a git folder that is not bare": (path) => {
      makeBareRepository(path);
      git(path, ["config", "core.bare", "false"]);
    },
    "a repository with objects": (path) => {
      makeBareRepository(path);
      git(path, ["hash-object", "-w", "--stdin"], { input: "x" });
    },
    "a repository with a ref": (path) => {
      makeBareRepository(path);
      writeFileSync(join(path, "refs/x"), `${fakeId(1)}\n`);
    },
    "a repository with packed refs": (path) => {
      makeBareRepository(path);
      writeFileSync(join(path, "packed-refs"), "");
    },
    "a repository that borrows objects": (path) => {
      makeBareRepository(path);
      mkdirSync(join(path, "objects/info"));
      writeFileSync(join(path, "objects/info/alternates"), "/elsewhere\n");
    },
    "a repository that another writer holds": (path) => {
      makeBareRepository(path);
      writeFileSync(join(path, "HEAD.lock"), "");
    },
    "a repository whose refs are not files": (path) => {
      makeBareRepository(path);
      git(path, ["config", "extensions.refStorage", "reftable"]);
    },
  };
  for (const [name, make] of Object.entries(unfit)) {
    it(`is refused, and left as it was, when it is ${name}`, async () => {
      const parent = mkdtempSync(join(folder, "unfit-"));
      const path = name === "below a file" ? join(parent, "file/x") : join(parent, "target");
      make(path);
      const before = snapshot(parent);
      await expect(exportSource(path)).rejects.toMatchObject({ code: "EXPORT_TARGET" });
      expect(snapshot(parent)).toEqual(before);
    });
  }

  it("takes one of two exports at once", async () => {
    const directory = freshPath();
    const ends = await Promise.allSettled([exportSource(directory), exportSource(directory)]);
    expect(ends.map((end) => end.status).sort()).toEqual(["fulfilled", "rejected"]);
    expect(ends.find((end) => end.status === "rejected")).toMatchObject({
      reason: { code: "EXPORT_TARGET" },
    });
    expectSound(directory);
  });
});

describe("an export that fails", () => {
  const targets: Record<string, (path: string) => void> = {
    "a folder yet to be made": () => {},
    "an empty folder": (path) => mkdirSync(path, { recursive: true }),
    "a fresh repository": (path) => {
      git(folder, ["init", "-q", "--bare", "--object-format=sha256", path]);
    },
  };
  async function* breakingOff() {
    yield* objects.slice(0, -1);
    throw new Error("the store went away");
  }
  for (const [name, make] of Object.entries(targets)) {
    it(`leaves ${name} as it was`, async () => {
      const parent = mkdtempSync(join(folder, "failing-"));
      const directory = join(parent, "deep/target");
      make(directory);
      const before = snapshot(parent);
      const base = { directory, refs, head: HEAD };
      await expect(exportRepository({ ...base, objects: breakingOff() })).rejects.toThrow(
        "the store went away",
      );
      expect(snapshot(parent)).toEqual(before);

      const stray = [...refs, { name: "refs/heads/stray", id: fakeId(1) }];
      await expect(
        exportRepository({ ...base, refs: stray, objects: streamOf(objects) }),
      ).rejects.toMatchObject({ code: "MISSING_OBJECT", details: { ref: "refs/heads/stray" } });
      expect(snapshot(parent)).toEqual(before);

      // A folder in the way of a file shows only when the files take their places.
      async function* obstructing() {
        yield* objects;
        mkdirSync(join(directory, "packed-refs"));
      }
      await expect(exportRepository({ ...base, objects: obstructing() })).rejects.toMatchObject({
        code: "EXPORT_TARGET",
      });
      const left = snapshot(parent);
      for (const path of [join(parent, "deep"), directory]) before.set(path, "folder");
      before.set(join(directory, "packed-refs"), "folder");
      expect(left).toEqual(before);
    });
  }

  it("was asked for a ref name that git's files cannot hold", async () => {
    const id = objects[0]!.id;
    for (const name of ["canonical", "refs/heads/a b", "refs/heads/a\nb", "refs/"]) {
      const asked = { directory: freshPath(), refs: [{ name, id }], head: HEAD };
      await expect(
        exportRepository({ ...asked, objects: streamOf(objects) }),
      ).rejects.toMatchObject({
        code: "INVALID_NAME",
      });
    }
    const twice = [refs[0]!, refs[0]!];
    await expect(
      exportRepository({
        directory: freshPath(),
        refs: twice,
        head: HEAD,
        objects: streamOf(objects),
      }),
    ).rejects.toMatchObject({ code: "INVALID_NAME" });
  });
});
