/** A repository and a ref in it, as an id names them. */
export interface GitName {
  readonly repository: string;
  readonly ref: string;
  readonly remote: boolean;
}

/** What Git's ref names never hold: control characters, what revisions are written with, and two dots. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const NOT_IN_REFS = /[\u0000-\u0020\u007f~^:?*[\\]|\.\.|@\{/;

/**
 * Reads an id such as `https://host/repository.git#refs/heads/main`, or `path#HEAD` of a repository below the root.
 *
 * @returns what is wrong with it, in words, where something is
 */
export function parseGitName(id: string): GitName | string {
  const cut = id.indexOf("#");
  if (cut < 0) return "its id names no ref; write REPOSITORY#refs/heads/NAME";
  const repository = id.slice(0, cut);
  const ref = id.slice(cut + 1);
  if (!isFullRefName(ref)) {
    return "its id has no full name of a ref; write REPOSITORY#refs/heads/NAME, or REPOSITORY#HEAD";
  }
  if (/^https?:\/\//i.test(repository)) return { repository, ref, remote: true };
  // URLs of other schemes, ext::COMMAND, host:path, and what a command could take for an option.
  if (repository.startsWith("-") || /^[^/]*:/.test(repository)) {
    return "refused: its repository is neither a URL of http or https nor a path below the root";
  }
  return { repository, ref, remote: false };
}

/** Whether it is HEAD, or a name below `refs/` that `git check-ref-format` takes. */
export function isFullRefName(name: string): boolean {
  if (name === "HEAD") return true;
  if (!name.startsWith("refs/") || !name.isWellFormed() || NOT_IN_REFS.test(name)) return false;
  if (name.endsWith(".")) return false;
  return name
    .split("/")
    .every((part) => part !== "" && !part.startsWith(".") && !part.endsWith(".lock"));
}

/** An object id of SHA-1 or SHA-256, the version of what a ref is at. */
export const OBJECT_ID = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;
