import { spawn, spawnSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const HOST = fileURLToPath(new URL("./host.mjs", import.meta.url));

export interface WarmRun {
  /** The file of the program. */
  readonly main: string;
  readonly args: readonly string[];
  /** All of the environment. */
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  readonly input: string;
  /** How long it may take, in milliseconds. */
  readonly limitMs?: number;
  /** How long it may keep its process alive after it is done, in milliseconds. */
  readonly lingerMs?: number;
}

type Answer =
  | { readonly status: number; readonly stdout: string; readonly stderr: string }
  | { readonly fault: string };

/** The process that runs commands, by the ends of the pipes that lead to it. */
interface Host {
  readonly requests: number;
  readonly answers: number;
}

let host: Host | undefined;

/**
 * Runs a command in the process that is kept for that, and waits as `spawnSync` does.
 *
 * @throws Error where it takes too long, or leaves something that would keep its process alive.
 */
export function runWarm(run: WarmRun): Exclude<Answer, { fault: string }> {
  host ??= startHost();
  const body = Buffer.from(JSON.stringify({ limitMs: 240_000, lingerMs: 20_000, ...run }));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(body.length);
  send(host.requests, Buffer.concat([length, body]));
  const answer = JSON.parse(
    receive(host.answers, receive(host.answers, 4).readUInt32LE()).toString(),
  ) as Answer;
  if ("fault" in answer) throw new Error(`${run.main} ${run.args.join(" ")}: ${answer.fault}`);
  return answer;
}

/** Starts the process. It ends with this one, whose end of its pipe is then closed. */
function startHost(): Host {
  const requests = pipe();
  const answers = pipe();
  const child = spawn(process.execPath, [HOST], {
    stdio: ["ignore", "inherit", "inherit", requests.read, answers.write],
  });
  child.unref();
  closeSync(requests.read);
  closeSync(answers.write);
  return { requests: requests.write, answers: answers.read };
}

/** A pipe whose ends block, which Node has no call for. */
function pipe(): { read: number; write: number } {
  const directory = mkdtempSync(join(tmpdir(), "agstate-pipe-"));
  try {
    const path = join(directory, "pipe");
    const { status, stderr } = spawnSync("mkfifo", [path], { encoding: "utf8" });
    if (status !== 0) throw new Error(`mkfifo failed: ${stderr}`);
    // Opening one end waits for the other, but where there are both already.
    const both = openSync(path, "r+");
    const ends = { read: openSync(path, "r"), write: openSync(path, "w") };
    closeSync(both);
    return ends;
  } finally {
    rmSync(directory, { recursive: true });
  }
}

function send(fd: number, bytes: Buffer): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
}

function receive(fd: number, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  for (let at = 0; at < length; ) {
    const read = readSync(fd, bytes, at, length - at, null);
    if (read === 0) {
      host = undefined;
      throw new Error("the process that runs commands ended before the command did");
    }
    at += read;
  }
  return bytes;
}
