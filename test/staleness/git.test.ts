import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { gitChecker } from "../../src/staleness/checkers/git.js";
import { isFullRefName } from "../../src/staleness/checkers/git-names.js";
import { git, temporaryFolder, tryGit } from "../support/git.js";
import { usually } from "../support/runs.js";

const folder = temporaryFolder();
const context = { signal: new AbortController().signal, now: Date.now };
const AT = { now: 0, observedAt: 0 };
const WHO = ["-c", "user.name=a", "-c", "user.email=a@example.com"];

const newFolder = () => mkdtempSync(join(folder, "root-"));

/** A repository with a commit, a branch and a tag of its own. */
function newRepository(path: string, format = "sha1"): (args: string[]) => string {
  git(folder, ["init", "-q", "-b", "main", `--object-format=${format}`, path]);
  const run = (args: string[]) => git(path, [...WHO, ...args]).trim();
  run(["commit", "-q", "--allow-empty", "-m", "first"]);
  run(["tag", "-a", "v1", "-m", "one"]);
  return run;
}

function checker(root: string) {
  const { observe } = gitChecker({ local: { root, searchPath: process.env.PATH } });
  return (id: string) => observe({ id, version: null }, context);
}

describe("the checker of Git's refs, in repositories below its root", () => {
  it("answers the id that a ref is at, as git says it", async () => {
    for (const format of ["sha1", "sha256"]) {
      const root = newFolder();
      const run = newRepository(join(root, "a/work"), format);
      git(root, ["clone", "-q", "--bare", "a/work", "bare.git"]);
      const observe = checker(root);
      for (const ref of ["HEAD", "refs/heads/main", "refs/tags/v1"]) {
        const version = run(["rev-parse", ref]);
        const shown = `${ref} at ${version.slice(0, 12)}`;
        for (const repository of ["a/work", "a/work/", "a/work/.git", "bare.git"]) {
          const found = await observe(`${repository}#${ref}`);
          expect(found).toEqual({ kind: "version", version, shown });
        }
      }
      run(["commit", "-q", "--allow-empty", "-m", "second"]);
      const moved = { kind: "version", version: run(["rev-parse", "HEAD"]) };
      expect(await observe("a/work#refs/heads/main")).toMatchObject(moved);
      run(["pack-refs", "--all"]);
      expect(await observe("a/work#refs/heads/main")).toMatchObject(moved);
      run(["worktree", "add", "-q", "-b", "other", "../second"]);
      expect(await observe("a/second#HEAD")).toMatchObject(moved);
    }
  });

  it("knows what is gone, by its full name only", async () => {
    const root = newFolder();
    const run = newRepository(join(root, "work"));
    const observe = checker(root);
    expect(await observe("work#refs/heads/none")).toEqual({
      kind: "gone",
      why: "there is no refs/heads/none",
    });
    expect(await observe("none#HEAD")).toEqual({
      kind: "gone",
      why: "there is no such repository",
    });
    // What rev-parse would take for it.
    for (const decoy of ["refs/heads/refs/heads/x", "refs/tags/refs/heads/x", "refs/tags/HEAD"]) {
      run(["update-ref", decoy, "HEAD"]);
    }
    run(["symbolic-ref", "HEAD", "refs/heads/unborn"]);
    for (const ref of ["refs/heads/x", "HEAD"]) {
      expect(await observe(`work#${ref}`)).toMatchObject({ kind: "gone" });
    }
    mkdirSync(join(root, "plain"));
    expect(await observe("plain#HEAD")).toEqual({
      kind: "unknown",
      why: "it is no Git repository that git reads",
    });
  });

  it("takes no folder for the repository that it lies in", async () => {
    const root = newFolder();
    newRepository(root);
    mkdirSync(join(root, "folder"));
    const observe = checker(root);
    expect(await observe(".#HEAD")).toMatchObject({ kind: "version" });
    expect(await observe("folder#HEAD")).toMatchObject({ kind: "unknown" });
    expect(await checker(join(root, "folder"))(".#HEAD")).toMatchObject({ kind: "unknown" });
  });

  it("does not know a ref that is broken", async () => {
    const root = newFolder();
    newRepository(join(root, "work"));
    const ref = join(root, "work/.git/refs/heads/main");
    writeFileSync(ref, `${"1".repeat(40)}\n`);
    expect(await checker(root)("work#refs/heads/main")).toEqual({
      kind: "unknown",
      why: "refs/heads/main cannot be read",
      again: false,
    });
  });

  it("refuses repositories that have their refs outside of the root", async () => {
    const outside = newFolder();
    const run = newRepository(join(outside, "secret"));
    run(["worktree", "add", "-q", "-b", "other", join(newFolder(), "tree")]);
    const root = newFolder();
    const secret = join(outside, "secret/.git");
    writeFileSync(join(newRepositoryFolder(root, "file"), ".git"), `gitdir: ${secret}\n`);
    symlinkSync(secret, join(newRepositoryFolder(root, "link"), ".git"));
    run(["worktree", "add", "-q", "-b", "third", join(root, "tree")]);
    for (const name of ["refs", "HEAD", "packed-refs"]) {
      newRepository(join(root, name));
      const place = join(root, name, ".git", name);
      rmSync(place, { recursive: true, force: true });
      run(["pack-refs", "--all"]);
      symlinkSync(join(secret, name), place);
    }
    newRepository(join(root, "one"));
    const one = join(root, "one/.git/refs/heads/main");
    rmSync(one);
    writeFileSync(join(outside, "id"), `${run(["rev-parse", "HEAD"])}\n`);
    symlinkSync(join(outside, "id"), one);
    const observe = checker(root);
    const why = "refused: its Git directory lies outside of the root";
    for (const name of ["file", "tree", "refs", "packed-refs", "one"]) {
      const found = await observe(`${name}#refs/heads/main`);
      expect([name, found]).toEqual([name, { kind: "unknown", why }]);
    }
    // This one git itself does not take for a repository.
    expect(await observe("HEAD#HEAD")).toMatchObject({ kind: "unknown" });
    expect(await observe("link#HEAD")).toMatchObject({ kind: "unknown", why });
    symlinkSync(join(outside, "secret"), join(root, "away"));
    expect(await observe("away#HEAD")).toMatchObject({ kind: "unknown" });
  });

  it("refuses what is neither a path below the root nor a URL of http", async () => {
    const root = newFolder();
    newRepository(join(root, "-work"));
    const observe = checker(root);
    const repositories = [
      ...["ssh://git@example.com/a", "git://example.com/a", "file:///etc", "FILE:///etc"],
      ...["ext::sh -c touch%20x", "git@example.com:a/b", "fd::1", "-work", "--upload-pack=x"],
      ...["/etc", "../x", "", "a\0b", "C:\\x"],
    ];
    for (const repository of repositories) {
      const { kind, why } = (await observe(`${repository}#HEAD`)) as { kind: string; why: string };
      expect([repository, kind, why.slice(0, 7)]).toEqual([repository, "unknown", "refused"]);
    }
    for (const ref of [
      "",
      "main",
      "HEAD^",
      "HEAD~1",
      "refs/heads/a..b",
      "@",
      "-x",
      "refs/",
      "ORIG_HEAD",
    ]) {
      const { kind, why } = (await observe(`work#${ref}`)) as { kind: string; why: string };
      expect([ref, kind, /full name/.test(why)]).toEqual([ref, "unknown", true]);
    }
    expect(await observe("work")).toMatchObject({ kind: "unknown" });
    const nowhere = await gitChecker({}).observe({ id: "work#HEAD", version: null }, context);
    expect(nowhere).toMatchObject({ kind: "unknown" });
  });

  it("runs nothing that a repository names, and takes nothing from the caller's settings", async () => {
    const root = newFolder();
    const run = newRepository(join(root, "work"));
    const ran = join(root, "ran");
    const script = join(root, "script");
    writeFileSync(script, `#!/bin/sh\ntouch ${ran}\nexit 1\n`, { mode: 0o755 });
    for (const [key, value] of [
      ["core.fsmonitor", script],
      ["core.sshCommand", script],
      ["core.pager", script],
      ["core.hooksPath", root],
      ["alias.show-ref", `!${script}`],
      ["alias.rev-parse", `!${script}`],
      ["credential.helper", `!${script}`],
      ["remote.origin.url", `ext::${script}`],
      ["remote.origin.promisor", "true"],
      ["remote.origin.partialclonefilter", "blob:none"],
      ["remote.origin.uploadpack", script],
      ["extensions.partialClone", "origin"],
      ["core.repositoryformatversion", "1"],
      ["protocol.allow", "always"],
    ] as const) {
      run(["config", key, value]);
    }
    copyFileSync(script, join(root, "post-checkout"));
    // An object that is lacking is what a partial clone would fetch.
    run(["update-ref", "refs/heads/whole", "HEAD"]);
    writeFileSync(join(root, "work/.git/refs/heads/main"), `${"1".repeat(40)}\n`);
    const observe = checker(root);
    expect(await observe("work#refs/heads/main")).toMatchObject({ kind: "unknown" });
    expect(await observe("work#refs/heads/whole")).toMatchObject({ kind: "version" });
    expect(existsSync(ran)).toBe(false);
    const other = newFolder();
    newRepository(join(other, "other"));
    process.env.GIT_DIR = join(other, "other/.git");
    try {
      mkdirSync(join(root, "plain"));
      expect(await observe("plain#HEAD")).toMatchObject({ kind: "unknown" });
    } finally {
      delete process.env.GIT_DIR;
    }
  });

  it("says so where there is no git, and stops where its time is over", async () => {
    const root = newFolder();
    newRepository(join(root, "work"));
    const { observe } = gitChecker({ local: { root, searchPath: root } });
    expect(await observe({ id: "work#HEAD", version: null }, context)).toEqual({
      kind: "unknown",
      why: "git is not installed",
    });
    // A git that never ends is killed.
    writeFileSync(join(root, "git"), "#!/bin/sh\n: > started\nexec sleep 600\n", { mode: 0o755 });
    const over = new AbortController();
    const path = `${root}:${process.env.PATH}`;
    const slow = gitChecker({ local: { root, searchPath: path } });
    const asked = slow.observe(
      { id: "work#HEAD", version: null },
      { ...context, signal: over.signal },
    );
    const reason = new Error("time");
    setTimeout(() => over.abort(reason), 50);
    await expect(asked).rejects.toBe(reason);
  });

  it("knows a version of its own form only", () => {
    const { compare } = gitChecker({});
    const [one, other] = ["1".repeat(40), "2".repeat(40)];
    expect(compare?.(one, one, AT)).toBe("same");
    expect(compare?.(one, other, AT)).toBe("changed");
    expect(compare?.(one, "1".repeat(64), AT)).toBe("changed");
    for (const text of ["main", "A".repeat(40), "1".repeat(39), `${one}\n`]) {
      expect(compare?.(text, text, AT)).toEqual({
        unknown: "the version on record is none of a ref",
      });
    }
  });
});

describe("full names of refs, against git check-ref-format", () => {
  const parts = fc.oneof(
    fc.constantFrom("a", ".", "..", ".lock", "lock", "@", "@{", "{", "/", "//", "refs/", "heads/"),
    fc.constantFrom("~", "^", ":", "?", "*", "[", "\\", " ", "\t", "\u007f", "é", "😀", "-", "#"),
    fc.string({ maxLength: 2 }),
  );
  it("agree", () => {
    const taken = { yes: 0, no: 0 };
    fc.assert(
      fc.property(fc.array(parts, { maxLength: 5 }), (given) => {
        const name = `refs/${given.join("")}`;
        if (name.includes("\0")) return;
        const byGit = tryGit(folder, ["check-ref-format", name]).status === 0;
        taken[byGit ? "yes" : "no"]++;
        expect([name, isFullRefName(name)]).toEqual([name, byGit]);
      }),
      { numRuns: usually(80, 10_000) },
    );
    expect(Math.min(taken.yes, taken.no)).toBeGreaterThan(3);
    expect(["HEAD", "head", "main", "refs", "", "@"].map(isFullRefName)).toEqual([
      true,
      ...new Array(5).fill(false),
    ]);
  });
});

function newRepositoryFolder(root: string, name: string): string {
  mkdirSync(join(root, name));
  return join(root, name);
}
