import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { AgstateError } from "../core/errors.js";

/** What stands where an export is to go. */
export type ExportTarget = "absent" | "empty" | "repository";

/** What `git init --bare` makes, from its templates included. */
const FRESH_REPOSITORY_ENTRIES = new Set([
  ...["HEAD", "config", "description", "objects", "refs"],
  ...["branches", "hooks", "info"],
]);

/**
 * Looks at a folder, and says whether an export may go there: it does not
 * exist, it is empty, or it is a bare SHA-256 repository as `git init` leaves it.
 *
 * @param ownFile a file of the exporter's own, which does not count
 * @throws AgstateError `EXPORT_TARGET` for anything else
 */
export async function inspectTarget(directory: string, ownFile?: string): Promise<ExportTarget> {
  const found = await stat(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (found === undefined) return "absent";
  if (!found.isDirectory()) refuse(directory, "it is not a folder");
  const entries = (await readdir(directory)).filter((entry) => entry !== ownFile);
  if (entries.length === 0) return "empty";

  for (const needed of ["HEAD", "config", "objects", "refs"]) {
    if (!entries.includes(needed)) refuse(directory, "it holds files and is not a bare repository");
  }
  const surplus = entries.find((entry) => !FRESH_REPOSITORY_ENTRIES.has(entry));
  if (surplus !== undefined) refuse(directory, `it is in use: it holds ${surplus}`);
  const problem = configProblem(await readFile(join(directory, "config"), "utf8"));
  if (problem !== null) refuse(directory, problem);
  if (await holdsFiles(join(directory, "refs"))) refuse(directory, "it has refs already");
  if (await holdsFiles(join(directory, "objects"))) refuse(directory, "it has objects already");
  return "repository";
}

/** Refuses a target, and says what would do. */
function refuse(directory: string, reason: string): never {
  throw new AgstateError(
    "EXPORT_TARGET",
    `cannot export to ${directory}: ${reason}. Name a folder that does not exist or is empty, ` +
      "or make one with: git init --bare --object-format=sha256",
    { directory, reason },
  );
}

/** Whether there is anything but folders in a folder, at any depth. */
async function holdsFiles(folder: string): Promise<boolean> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.some((entry) => !entry.isDirectory());
}

/** Why a repository with this config cannot take an export; null when it can. */
function configProblem(config: string): string | null {
  const settings = new Map<string, string>();
  let section = "";
  for (const line of config.split("\n")) {
    const header = /^\s*\[([^\]]+)\]/.exec(line);
    if (header !== null) section = header[1]!.trim().toLowerCase();
    const setting = /^\s*([A-Za-z][A-Za-z0-9-]*)\s*=\s*([^#;]*)/.exec(line);
    if (setting !== null) {
      settings.set(`${section}.${setting[1]!.toLowerCase()}`, setting[2]!.trim().toLowerCase());
    }
  }
  if (settings.get("extensions.objectformat") !== "sha256") {
    return "it is not a repository of the SHA-256 object format";
  }
  if (settings.get("core.bare") !== "true") return "it is not a bare repository";
  if ((settings.get("extensions.refstorage") ?? "files") !== "files") {
    return "its refs are not kept in files";
  }
  return null;
}
