import { execFile } from "node:child_process";
import { realpath } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { promisify } from "node:util";
import { findBelow, isBelow, isMissing, type RootedPath, unreadable } from "../rooted.js";
import type { Observation } from "../types.js";
import { OBJECT_ID } from "./git-names.js";

const run = promisify(execFile);

/** Most that Git may say, in bytes. */
const OUTPUT_MAX_BYTES = 64 * 1024;

export interface LocalGit {
  /** The directory that repositories lie below. */
  readonly root: string;
  /** Folders in which `git` is looked for, as `PATH` has them; default the system's own. */
  readonly searchPath?: string | undefined;
}

/**
 * Finds what a ref of a repository below the root is at, by `git`.
 *
 * Nothing of the caller's own settings takes part, and nothing may be fetched: a repository that somebody else made must not
 * make git run what it names.
 */
export async function observeLocalRef(
  { root, searchPath }: LocalGit,
  repository: string,
  ref: string,
  signal: AbortSignal,
): Promise<Observation> {
  const found = await findBelow(root, repository);
  if ("kind" in found) {
    return found.kind === "gone" ? { ...found, why: "there is no such repository" } : found;
  }
  const git = (args: readonly string[]) => runGit(found.path, args, searchPath, signal);
  const folders = await git(["rev-parse", "--absolute-git-dir", "--git-common-dir"]);
  const [gitDirectory, common, ...more] = folders.lines;
  if (gitDirectory === undefined || common === undefined || more.length !== 1) {
    return { kind: "unknown", why: folders.why };
  }
  const away = await refusalOf(found, [gitDirectory, common], ref);
  if (away !== null) return away;
  // By its full name alone: rev-parse would go on to look for tags and branches that are called so.
  const shown = await git(["show-ref", "--verify", "--hash", "--", ref]);
  const id = shown.lines[0] ?? "";
  if (shown.status === 0 && OBJECT_ID.test(id)) {
    return { kind: "version", version: id, shown: `${ref} at ${id.slice(0, 12)}` };
  }
  // Quietly, its status tells one that is not there from one that is broken.
  const quiet = await git(["show-ref", "--verify", "--quiet", "--", ref]);
  if (quiet.status === 1) return { kind: "gone", why: `there is no ${ref}` };
  return { kind: "unknown", why: `${ref} cannot be read`, again: quiet.status === 0 };
}

/** Why a repository is refused that has its refs elsewhere; null when all lies below the root. */
async function refusalOf(
  { root, path }: RootedPath,
  folders: readonly string[],
  ref: string,
): Promise<Observation | null> {
  for (const folder of folders) {
    const places = [
      folder,
      ...["HEAD", "packed-refs", "refs", ref].map((name) => `${folder}/${name}`),
    ];
    for (const place of places) {
      try {
        if (!isBelow(root, await realpath(resolve(path, place)))) {
          return { kind: "unknown", why: "refused: its Git directory lies outside of the root" };
        }
      } catch (error) {
        // Not every repository has each of them.
        if (!isMissing(error)) return unreadable("its Git directory", error);
      }
    }
  }
  return null;
}

const NO_REPOSITORY = "it is no Git repository that git reads";

/** How a run of git ended. */
interface GitRun {
  readonly status: number;
  readonly lines: readonly string[];
  /** In words, where it failed. */
  readonly why: string;
}

async function runGit(
  path: string,
  args: readonly string[],
  searchPath: string | undefined,
  signal: AbortSignal,
): Promise<GitRun> {
  try {
    const { stdout } = await run("git", ["--no-pager", "-C", path, ...args], {
      signal,
      killSignal: "SIGKILL",
      maxBuffer: OUTPUT_MAX_BYTES,
      windowsHide: true,
      env: {
        ...(searchPath === undefined ? {} : { PATH: searchPath }),
        LC_ALL: "C",
        GIT_CONFIG_NOSYSTEM: "1",
        GIT_CONFIG_GLOBAL: "/dev/null",
        GIT_OPTIONAL_LOCKS: "0",
        GIT_TERMINAL_PROMPT: "0",
        // A partial clone would fetch what it lacks, in a way that its own settings say.
        GIT_NO_LAZY_FETCH: "1",
        GIT_ALLOW_PROTOCOL: "none",
        // A folder is no repository because one above it is.
        GIT_CEILING_DIRECTORIES: dirname(path),
      },
    });
    return { status: 0, lines: stdout.split("\n"), why: NO_REPOSITORY };
  } catch (error) {
    signal.throwIfAborted();
    const { code } = error as { readonly code?: unknown };
    if (typeof code === "number") {
      return { status: code, lines: [], why: NO_REPOSITORY };
    }
    const why = code === "ENOENT" ? "git is not installed" : `git could not be run (${code})`;
    return { status: -1, lines: [], why };
  }
}
