import { lstat, realpath } from "node:fs/promises";
import { isAbsolute, join, relative, sep } from "node:path";
import type { Observation } from "./types.js";

/** Failures of the system that may pass. */
const PASSING = new Set([
  "EIO",
  "EAGAIN",
  "EBUSY",
  "EMFILE",
  "ENFILE",
  "ENOMEM",
  "ESTALE",
  "ETXTBSY",
]);

/** Why something below a root cannot be told, or that it is gone. */
export type NotThere = Extract<Observation, { readonly kind: "unknown" | "gone" }>;

/** A place below a root, as the file system has it: no symbolic link is left in either path. */
export interface RootedPath {
  readonly root: string;
  readonly path: string;
}

/**
 * Finds a relative path below a root, through symbolic links as long as these stay below it.
 *
 * Of what lies outside nothing is told, not even whether it is there: a link that leads out and one that leads nowhere
 * are refused in the same words.
 */
export async function findBelow(root: string, id: string): Promise<RootedPath | NotThere> {
  const refusal = pathProblem(id);
  if (refusal !== null) return { kind: "unknown", why: `refused: its path ${refusal}` };
  let real: string;
  try {
    real = await realpath(root);
  } catch (error) {
    return unreadable("the root of files", error);
  }
  try {
    const path = await realpath(join(real, id));
    return isBelow(real, path) ? { root: real, path } : LEADS_AWAY;
  } catch {
    return await whyNot(real, id);
  }
}

/** Whether a real path is the real root, or below it. */
export function isBelow(root: string, path: string): boolean {
  const way = relative(root, path);
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

/** A failure of the file system, without the paths that its message has. */
export function unreadable(what: string, error: unknown): NotThere {
  const { code } = error as NodeJS.ErrnoException;
  // What went wrong otherwise is a defect, and its checker's to be told.
  if (code === undefined) throw error;
  if (isMissing(error)) return { kind: "unknown", why: `${what} is not there` };
  return { kind: "unknown", why: `${what} cannot be read (${code})`, again: PASSING.has(code) };
}

export function isMissing(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === "ENOENT" || code === "ENOTDIR";
}

const LEADS_AWAY: NotThere = {
  kind: "unknown",
  why: "refused: a symbolic link leads out of the root, or to nothing",
};

function pathProblem(id: string): string | null {
  if (id.includes("\0")) return "holds a NUL character";
  if (id === "" || isAbsolute(id) || /^[/\\]|^[a-z]:/i.test(id)) {
    return "is not relative to the root";
  }
  return id.split(/[/\\]/).includes("..") ? "holds .." : null;
}

/** Why a path cannot be followed: link by link, so that what a link outside fails by is not told. */
async function whyNot(root: string, id: string): Promise<NotThere> {
  let place = root;
  for (const part of id.split(sep === "/" ? "/" : /[/\\]/)) {
    place = join(place, part);
    try {
      if (!(await lstat(place)).isSymbolicLink()) continue;
    } catch (error) {
      return isMissing(error)
        ? { kind: "gone", why: "there is no such file" }
        : unreadable("it", error);
    }
    try {
      place = await realpath(place);
    } catch {
      return LEADS_AWAY;
    }
    if (!isBelow(root, place)) return LEADS_AWAY;
  }
  return { kind: "unknown", why: "it changed while it was looked for", again: true };
}
