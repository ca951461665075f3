import { closeSync, openSync, readdirSync, readFileSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import stringWidth from "string-width";
import { describe, expect, it, onTestFinished } from "vitest";
import { type Diagnosis, diagnoseStore } from "../../src/index.js";
import { CliSandbox } from "../support/cli.js";
import { agstateError } from "../support/stores.js";

function sandbox(): CliSandbox {
  const box = new CliSandbox();
  onTestFinished(() => box.remove());
  return box;
}

const levels = ({ findings }: Diagnosis) =>
  Object.fromEntries(findings.map(({ check, level }) => [check, level]));

/** All files of a folder with their bytes. */
const content = (folder: string) =>
  readdirSync(folder).map((name) => [name, readFileSync(join(folder, name)).toString("base64")]);

describe("agstate doctor on an embedded store", () => {
  it("finds a new store good, in 80 columns, without colour, and in JSON as one value", () => {
    const box = sandbox();
    box.ok(["init"]);
    const before = content(join(box.directory, ".agstate"));
    const text = box.ok(["doctor"]);
    expect(text).toMatch(/^\/.*\.agstate\n(good {5}\S.*\n)+Nothing is wrong\.\n$/);
    expect(text).not.toContain("\u001b");
    expect(box.ok(["doctor"], { env: { FORCE_COLOR: "1" } })).toContain("\u001b[");
    const lines = box.json<Diagnosis & { wrong: number; warnings: number }>(["doctor"]);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({ backend: "sqlite", wrong: 0, warnings: 0 });
    expect(levels(lines[0] as Diagnosis)).toEqual({
      directory: "good",
      space: "good",
      "file system": "good",
      schema: "good",
      journal: "good",
      file: "good",
      lock: "good",
      synchronous: "good",
    });
    expect(content(join(box.directory, ".agstate"))).toEqual(before);
  });

  it("says that there is no store, that its file is empty, or is somebody else's, with the exit code of that", () => {
    const box = sandbox();
    const none = box.run(["doctor", "--store", "nowhere"]);
    expect(none).toMatchObject({ status: 3, stderr: "" });
    expect(none.stdout).toMatch(
      /wrong {4}There is no directory[\s\S]*-> Make a store[\s\S]*\n1 wrong\.\n$/,
    );
    for (const line of none.stdout.split("\n").slice(1))
      expect(stringWidth(line)).toBeLessThanOrEqual(80);
    box.ok(["init", "empty"]);
    writeFileSync(join(box.directory, "empty", "store.db"), "");
    expect(box.run(["doctor", "--store", "empty"])).toMatchObject({ status: 6 });
    box.ok(["init", "foreign"]);
    const db = new Database(join(box.directory, "foreign", "store.db"));
    db.pragma("application_id = 7");
    db.close();
    const foreign = box.run(["doctor", "--store", "foreign"]);
    expect(foreign).toMatchObject({ status: 6 });
    expect(foreign.stdout).toMatch(/another\s+program/);
  });

  it("finds damage that opening does not, and a store that is newer", () => {
    const box = sandbox();
    box.ok(["init"]);
    box.ok(["workflow", "create", "w"]);
    const state = JSON.stringify(Array.from({ length: 5000 }, (_, i) => `element ${i}`));
    box.ok(["commit", "-"], { input: state });
    const path = join(box.directory, ".agstate", "store.db");
    const db = new Database(path);
    db.pragma("wal_checkpoint(TRUNCATE)");
    const pages = db.pragma("page_count", { simple: true }) as number;
    db.close();
    const file = openSync(path, "r+");
    writeSync(file, Buffer.alloc(4096, 0xa5), 0, 4096, 4096 * Math.floor(pages / 2));
    closeSync(file);
    const damaged = box.run(["doctor"]);
    expect(damaged.status).toBe(6);
    expect(damaged.stdout).toMatch(/wrong {4}SQLite finds its file damaged:/);

    box.ok(["init", "newer"]);
    const newer = new Database(join(box.directory, "newer", "store.db"));
    newer.pragma("user_version = 99");
    newer.close();
    expect(box.run(["doctor", "--store", "newer"]).status).toBe(5);
  });

  it("warns, and ends with 0, while another process holds the write lock, or the journal was changed", () => {
    const box = sandbox();
    box.ok(["init"]);
    const db = new Database(join(box.directory, ".agstate", "store.db"));
    onTestFinished(() => {
      db.close();
    });
    db.exec("BEGIN IMMEDIATE");
    expect(box.ok(["doctor"])).toMatch(
      /warning {2}Another process holds[\s\S]*Nothing is wrong, 1 warning\.\n$/,
    );
    db.exec("ROLLBACK");
    db.pragma("journal_mode = DELETE");
    expect(box.ok(["doctor"])).toMatch(/warning {2}The journal mode is delete/);
    expect(db.pragma("journal_mode", { simple: true })).toBe("delete");
  });

  it("says which stores there are when it is given none of them", async () => {
    await expect(diagnoseStore("mysql://here")).rejects.toEqual(agstateError("INVALID_ARGUMENT"));
    expect((await diagnoseStore("memory:")).findings).toHaveLength(1);
    expect(sandbox().run(["doctor"])).toMatchObject({ status: 3, stdout: "" });
  });
});
