import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";

/** Makes a temporary folder that is removed when the test file ends. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "agstate-git-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export interface GitOptions {
  readonly input?: string | Uint8Array;
  readonly env?: Readonly<Record<string, string>>;
}

/** What a run of git ended with. */
export interface GitResult {
  readonly status: number | null;
  readonly stdout: Buffer;
  readonly stderr: string;
}

/** Runs git in a folder, untouched by the settings of the machine and of the user, and answers how it ended. */
export function tryGit(cwd: string, args: readonly string[], options: GitOptions = {}): GitResult {
  const run = spawnSync("git", args, {
    cwd,
    input: options.input ?? "",
    maxBuffer: 1024 * 1024 * 1024,
    env: {
      PATH: process.env.PATH ?? "",
      HOME: tmpdir(),
      LC_ALL: "C",
      TZ: "UTC",
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_CONFIG_GLOBAL: "/dev/null",
      GIT_TERMINAL_PROMPT: "0",
      ...options.env,
    },
  });
  if (run.error !== undefined) throw run.error;
  return { status: run.status, stdout: run.stdout, stderr: run.stderr.toString() };
}

/** Runs git, and answers the bytes of its standard output; a failure is thrown with what git said. */
export function gitBytes(cwd: string, args: readonly string[], options: GitOptions = {}): Buffer {
  const { status, stdout, stderr } = tryGit(cwd, args, options);
  if (status !== 0) throw new Error(`git ${args.join(" ")} ended with ${status}:\n${stderr}`);
  return stdout;
}

/** Runs git, and answers its standard output as text. */
export function git(cwd: string, args: readonly string[], options: GitOptions = {}): string {
  return gitBytes(cwd, args, options).toString();
}

/** Runs git, and answers the lines of its standard output. */
export function gitLines(cwd: string, args: readonly string[], options: GitOptions = {}): string[] {
  const lines = git(cwd, args, options).split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

const BARE_SHA256_CONFIG = `[core]
	repositoryformatversion = 1
	bare = true
[extensions]
	objectformat = sha256
`;

/** Makes an empty bare SHA-256 repository with only what git asks for; HEAD is `refs/heads/canonical`, unborn. */
export function makeBareRepository(directory: string): string {
  mkdirSync(join(directory, "objects"), { recursive: true });
  mkdirSync(join(directory, "refs"));
  writeFileSync(join(directory, "config"), BARE_SHA256_CONFIG);
  writeFileSync(join(directory, "HEAD"), "ref: refs/heads/canonical\n");
  return directory;
}
