import { dirname, join, resolve } from "node:path";
import { AgstateError } from "../core/errors.js";
import type { ObjectId } from "../core/ids.js";
import { quoteForMessage } from "../core/names.js";
import { inspectTarget } from "./export-target.js";
import { type PackObject, PackWriter } from "./pack.js";
import { packIndex } from "./pack-index.js";
import { Staging, syncFolder } from "./staging.js";

export interface ExportedRef {
  /** Full name, for example `refs/heads/canonical`. */
  readonly name: string;
  readonly id: ObjectId;
}

export interface RepositoryExport {
  /** Where the repository goes; see {@link exportRepository}. */
  readonly directory: string;
  /** Those that are known only then are asked for when all objects are written. */
  readonly refs: readonly ExportedRef[] | (() => readonly ExportedRef[]);
  /** The full name of the ref that HEAD stands for; it need not be among `refs`. */
  readonly head: string;
  /** Everything that the refs reach, in any order, already verified; taken one at a time. */
  readonly objects: AsyncIterable<PackObject>;
  /** What Git has to know of objects that are not there; asked for when all objects are written. */
  readonly lacks?: () => Lacks;
}

/** What a repository lacks on purpose. */
export interface Lacks {
  /** Whether objects are lacking that others refer to: it is then a partial clone. */
  readonly partial: boolean;
  /** Commits whose parents are lacking. */
  readonly shallow: readonly ObjectId[];
}

/** How much an export wrote. */
export interface ExportResult {
  readonly objects: number;
  readonly refs: number;
}

const CONFIG = `[core]
	repositoryformatversion = 1
	filemode = true
	bare = true
[extensions]
	objectformat = sha256
`;

/**
 * What makes a repository a partial clone, whose lacking objects are promised by a remote (gitrepository-layout(5),
 * partial-clone in Git's technical documentation). There is none that could give them.
 */
const PARTIAL_CLONE = `	partialClone = agstate
[remote "agstate"]
	promisor = true
	url = agstate::withheld
`;

const PACKED_REFS_HEADER = "# pack-refs with: peeled fully-peeled sorted \n";

/** Git keeps packs and their indexes read-only. */
const PACK_FILE_MODE = 0o444;

/**
 * Writes a bare SHA-256 Git repository: one pack with its index, packed refs, HEAD.
 *
 * The directory must not exist, or be empty, or be a bare SHA-256 repository
 * that is as `git init` left it, whose config and hooks are left alone. No
 * command is run. Files are written under temporary names (`HEAD.lock` and so
 * on, which keep Git and a second export away) and take their places when all
 * of them are on the disk, HEAD last. When anything fails, all that was written
 * is taken away again.
 *
 * @throws AgstateError `EXPORT_TARGET` when the directory cannot be used or
 *   written, `INVALID_NAME` for a ref name that Git's files cannot hold,
 *   `MISSING_OBJECT` when a ref points to an object that is not among `objects`
 */
export async function exportRepository(what: RepositoryExport): Promise<ExportResult> {
  if (typeof what.refs !== "function") checkRefNames(what.head, what.refs);
  const directory = resolve(what.directory);
  const staging = new Staging();
  try {
    return await writeRepository(directory, what, staging);
  } catch (error) {
    await staging.rollback();
    throw isFileError(error) ? cannotWrite(directory, error) : error;
  }
}

async function writeRepository(
  directory: string,
  what: RepositoryExport,
  staging: Staging,
): Promise<ExportResult> {
  const at = (path: string) => join(directory, path);
  const isNew = (await inspectTarget(directory)) === "absent";
  await staging.folder(directory);
  await staging.write(at("HEAD.lock"), `ref: ${what.head}\n`);
  // Once more, now that nobody else can finish an export here.
  const target = await inspectTarget(directory, "HEAD.lock");
  for (const path of ["objects/info", "objects/pack", "refs/heads", "refs/tags"]) {
    await staging.folder(at(path));
  }

  const { count, refs, lacks } = await writePack(at("objects/pack"), what, staging);
  const texts: [name: string, text: string][] = [];
  if (target !== "repository")
    texts.push(["config", CONFIG + (lacks.partial ? PARTIAL_CLONE : "")]);
  else if (lacks.partial) throw needsOwnConfig(directory);
  if (refs.length > 0) texts.push(["packed-refs", packedRefs(refs)]);
  if (lacks.shallow.length > 0) {
    texts.push([
      "shallow",
      [...lacks.shallow]
        .sort()
        .map((id) => `${id}\n`)
        .join(""),
    ]);
  }
  for (const [name, text] of texts) {
    await staging.write(at(`${name}.lock`), text);
    staging.placeLater(at(`${name}.lock`), at(name));
  }
  staging.placeLater(at("HEAD.lock"), at("HEAD"));

  await staging.place();
  for (const path of ["objects/pack", "objects", "refs", "."]) await syncFolder(at(path));
  if (isNew) await syncFolder(dirname(directory));
  return { objects: count, refs: refs.length };
}

/** What was put into a pack, and what is known after. */
interface Packed {
  readonly count: number;
  readonly refs: readonly ExportedRef[];
  readonly lacks: Lacks;
}

/** Writes the pack and its index, none when there are no objects. */
async function writePack(
  folder: string,
  what: RepositoryExport,
  staging: Staging,
): Promise<Packed> {
  const suffix = `${process.pid.toString(36)}-${Date.now().toString(36)}`;
  const packPath = staging.temporary(join(folder, `tmp_pack_${suffix}`));
  const pack = await PackWriter.create(packPath, PACK_FILE_MODE);
  try {
    for await (const object of what.objects) await pack.add(object);
    const refs = typeof what.refs === "function" ? what.refs() : what.refs;
    if (typeof what.refs === "function") checkRefNames(what.head, refs);
    const lacks = what.lacks?.() ?? { partial: false, shallow: [] };
    for (const ref of refs) if (!pack.has(ref.id)) throw missingTarget(ref);
    if (pack.entries.length === 0) {
      await staging.discard(packPath);
      return { count: 0, refs, lacks };
    }
    const checksum = await pack.finish();
    const indexPath = join(folder, `tmp_idx_${suffix}`);
    await staging.write(indexPath, packIndex(pack.entries, checksum), PACK_FILE_MODE);
    const name = join(folder, `pack-${checksum.toString("hex")}`);
    // The index comes second: Git takes a pack into use when it sees the index.
    staging.placeLater(packPath, `${name}.pack`);
    if (lacks.partial) {
      const promisorPath = join(folder, `tmp_promisor_${suffix}`);
      await staging.write(promisorPath, "", PACK_FILE_MODE);
      staging.placeLater(promisorPath, `${name}.promisor`);
    }
    staging.placeLater(indexPath, `${name}.idx`);
    return { count: pack.entries.length, refs, lacks };
  } finally {
    await pack.close();
  }
}

function packedRefs(refs: readonly ExportedRef[]): string {
  const sorted = [...refs].sort((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)));
  return PACKED_REFS_HEADER + sorted.map(({ name, id }) => `${id} ${name}\n`).join("");
}

/** Refuses what would break the lines of `HEAD` and `packed-refs`; the rules for names are the callers'. */
function checkRefNames(head: string, refs: readonly ExportedRef[]): void {
  const names = new Set<string>();
  for (const { name } of refs) {
    if (names.has(name)) throw badRefName(name, "is given twice");
    names.add(name);
  }
  for (const name of names.add(head)) {
    if (/^refs\/[^\p{Cc}\p{Cs} ]+$/u.test(name)) continue;
    throw badRefName(name, "does not begin with refs/, or holds a space or a control character");
  }
}

function badRefName(name: string, problem: string): AgstateError {
  const message = `cannot export the ref ${quoteForMessage(name)}: it ${problem}`;
  return new AgstateError("INVALID_NAME", message, { field: "ref", name });
}

function missingTarget({ name, id }: ExportedRef): AgstateError {
  return new AgstateError(
    "MISSING_OBJECT",
    `${name} points to ${id}, which is not among the exported objects; run fsck on the store`,
    { ref: name, id },
  );
}

function needsOwnConfig(directory: string): AgstateError {
  return new AgstateError(
    "EXPORT_TARGET",
    `${directory} has a config of its own, and an export that lacks erased objects has to say so in it; name a folder that is not there, or is empty`,
    { directory, reason: "partial" },
  );
}

function isFileError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && "syscall" in error && "code" in error;
}

function cannotWrite(directory: string, error: NodeJS.ErrnoException): AgstateError {
  return new AgstateError(
    "EXPORT_TARGET",
    `cannot write the export to ${directory}: ${error.message}. ` +
      "What was written is removed; make room or give the rights, or name another folder",
    { directory, reason: error.code },
    { cause: error },
  );
}
