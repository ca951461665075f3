import { accessSync, constants, existsSync, statfsSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import Database from "better-sqlite3";
import { isAgstateError } from "../../core/errors.js";
import { type Finding, good, warning, wrong } from "../../core/finding.js";
import { isBusy, toStoreError } from "./errors.js";
import { configure, MAIN_FILE } from "./open.js";
import { refuseForeign, SCHEMA_VERSION, schemaVersion } from "./schema.js";
import { checkSideFiles, holdMainFile } from "./side-files.js";

/** Below this much free space a warning is due, in bytes. */
const FREE_MIN_BYTES = 256 * 1024 * 1024;

/** Linux's numbers of file systems that other machines may write to, or whose locks are not to be trusted. */
const NETWORK: Readonly<Record<number, string>> = {
  26985: "NFS",
  20859: "SMB",
  4283649346: "CIFS",
  4266872130: "SMB",
  16914839: "9P",
  12805120: "Ceph",
  1397113167: "AFS",
  198183888: "Lustre",
  1702057286: "FUSE",
};

/**
 * Looks at an embedded store and the file system that it is on; brings nothing up to date.
 *
 * The check of the file reads all of it.
 */
export async function diagnoseSqlite(
  path: string,
): Promise<{ readonly location: string; readonly findings: Finding[] }> {
  const location = resolve(path);
  const main = join(location, MAIN_FILE);
  if (!existsSync(location)) {
    const what = `There is no directory ${location}.`;
    return { location, findings: [missing(what)] };
  }
  const findings = [rightsOf(location), spaceOf(location), fileSystemOf(location)];
  if (!existsSync(main)) {
    return { location, findings: [...findings, missing(`There is no store in ${location}.`)] };
  }
  if (statSync(main).size === 0) {
    const remedy = "Restore a backup, or make a new store in its place with agstate init.";
    findings.push(wrong("file", "STORE_DAMAGED", `${main} is empty.`, remedy));
    return { location, findings };
  }
  try {
    await checkSideFiles(main);
    lookInto(main, location, findings);
  } catch (error) {
    const known = toStoreError(error, location);
    if (!isAgstateError(known)) throw error;
    const remedy = "Do what the message says, or restore a backup: all files of the directory.";
    findings.push(wrong("file", known.code, `${known.message}.`, remedy));
  }
  return { location, findings };
}

function missing(what: string): Finding {
  const remedy = "Make a store with agstate init, or name another directory by --store.";
  return wrong("store", "STORE_NOT_FOUND", what, remedy);
}

function rightsOf(location: string): Finding {
  try {
    accessSync(location, constants.R_OK | constants.W_OK | constants.X_OK);
    return good("directory", "The directory can be read and written.");
  } catch {
    return wrong(
      "directory",
      "STORE_READONLY",
      `${location} cannot be written to, which reading a store needs too.`,
      "Give this user the right to write there, or copy the store.",
    );
  }
}

function spaceOf(location: string): Finding {
  const { bavail, bsize } = statfsSync(location);
  const free = bavail * bsize;
  const text = `${Math.floor(free / 1024 / 1024)} MiB are free on the file system.`;
  if (free >= FREE_MIN_BYTES) return good("space", text);
  const remedy = "Free some space; a write that finds none fails and changes nothing.";
  return free === 0 ? wrong("space", "STORE_FULL", text, remedy) : warning("space", text, remedy);
}

function fileSystemOf(location: string): Finding {
  const name = process.platform === "linux" ? NETWORK[statfsSync(location).type >>> 0] : undefined;
  if (name === undefined)
    return good("file system", "It is not known to be a network file system.");
  return warning(
    "file system",
    `The file system is of the kind ${name}, which other machines may share; SQLite's locks may not hold there.`,
    "Put the store on a local disk, or use a PostgreSQL store.",
  );
}

/** Adds what the database says; what was found before an error stays. */
function lookInto(main: string, location: string, findings: Finding[]): void {
  const db = new Database(main, { timeout: 0, fileMustExist: true });
  const unhold = holdMainFile(main);
  try {
    refuseForeign(db, location);
    findings.push(schemaOf(schemaVersion(db)), journalOf(db));
    const problems = problemsOf(db);
    findings.push(
      problems.length === 0
        ? good("file", "SQLite finds its file sound (quick check).")
        : wrong(
            "file",
            "STORE_DAMAGED",
            `SQLite finds its file damaged: ${problems.join("; ")}.`,
            "Run agstate fsck to see how much is readable, and restore a backup: all files of the directory.",
          ),
    );
    findings.push(...locksOf(db));
  } finally {
    db.close();
    unhold();
  }
}

/** What SQLite's own check finds; damage that it trips over counts as well. */
function problemsOf(db: Database.Database): string[] {
  try {
    const found = db.pragma("quick_check(5)") as { quick_check: string }[];
    return found.map(({ quick_check }) => quick_check).filter((text) => text !== "ok");
  } catch (error) {
    if ((error as { code?: string }).code?.startsWith("SQLITE_CORRUPT") !== true) throw error;
    return [(error as Error).message];
  }
}

function schemaOf(version: number): Finding {
  if (version === SCHEMA_VERSION)
    return good("schema", `The schema is of version ${version}, the newest known.`);
  if (version === 0)
    return wrong(
      "schema",
      "STORE_NOT_FOUND",
      "The store was never finished.",
      "Make it with agstate init.",
    );
  return warning(
    "schema",
    `The schema is of version ${version}; the newest known is ${SCHEMA_VERSION}.`,
    "None is needed: it is brought up to date when the store is next opened.",
  );
}

function journalOf(db: Database.Database): Finding {
  const mode = db.pragma("journal_mode", { simple: true });
  if (mode === "wal") return good("journal", "The file has a write-ahead log.");
  return warning(
    "journal",
    `The journal mode is ${mode}, not wal: another program changed it.`,
    "None is needed: it is set again when the store is next opened.",
  );
}

/** Whether the write lock can be had now, and what a session of ours would sync. */
function locksOf(db: Database.Database): Finding[] {
  try {
    db.exec("BEGIN IMMEDIATE");
    db.exec("ROLLBACK");
  } catch (error) {
    if (!isBusy(error)) throw error;
    return [
      warning(
        "lock",
        "Another process holds the write lock at this moment.",
        "None is needed if it goes away; if it stays, look for a process that hangs in a transaction.",
      ),
    ];
  }
  const free = good("lock", "The write lock is free.");
  // Configuring would change the file.
  if (db.pragma("journal_mode", { simple: true }) !== "wal") return [free];
  configure(db, {});
  const level = db.pragma("synchronous", { simple: true });
  return [
    free,
    // 2 is FULL, 3 EXTRA.
    Number(level) >= 2
      ? good("synchronous", "Each transaction is synced to the disk (synchronous is FULL).")
      : warning(
          "synchronous",
          `synchronous is ${level}: a power loss may lose acknowledged commits.`,
          "Use a build of SQLite that can have synchronous = FULL.",
        ),
  ];
}
