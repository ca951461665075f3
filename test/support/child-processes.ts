import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach } from "vitest";

/** How a process ended. */
export interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A Node process of a test, that talks by lines. */
export interface Child {
  readonly pid: number;
  /** Every whole line of standard output until now. */
  readonly lines: readonly string[];
  /** Everything of standard error until now. */
  readonly errors: () => string;
  /**
   * Waits for the first, or nth, line that begins with a word, and answers the rest of it.
   *
   * Throws when the process ends without saying it.
   */
  readonly said: (word: string, nth?: number) => Promise<string>;
  /** Tells a waiting child to begin. */
  readonly go: () => void;
  readonly kill: () => void;
  /** How it ended, when all it said has been read. */
  readonly ended: Promise<Ending>;
}

const running = new Set<ChildProcess>();

let over = true;

beforeEach(() => {
  over = false;
});

afterEach(async () => {
  // What a failed test left going on must not start more.
  over = true;
  await Promise.all(
    [...running].map(async (child) => {
      const closed = once(child, "close");
      child.kill("SIGKILL");
      await closed;
    }),
  );
});

/** Starts a script under Node with arguments as JSON; it is killed at the end of the test if it still runs. */
export function startChild(script: URL, args: object, launcher: readonly string[] = []): Child {
  if (over) throw new Error("the test is over");
  const command = [...launcher, process.execPath, fileURLToPath(script), JSON.stringify(args)];
  const child = spawn(command[0]!, command.slice(1), { stdio: ["pipe", "pipe", "pipe"] });
  running.add(child);
  const lines: string[] = [];
  const listeners = new Set<() => void>();
  const tell = () => {
    for (const listen of [...listeners]) listen();
  };
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  // A killed child does not read what it is told.
  child.stdin.on("error", () => {});
  createInterface({ input: child.stdout }).on("line", (line) => {
    lines.push(line);
    tell();
  });
  let ending: Ending | null = null;
  const ended = new Promise<Ending>((resolve, reject) => {
    child.on("error", (error) => {
      running.delete(child);
      reject(error);
    });
    child.on("close", (code, signal) => {
      running.delete(child);
      ending = { code, signal };
      resolve(ending);
      tell();
    });
  });
  const said = (word: string, nth = 1) =>
    new Promise<string>((resolve, reject) => {
      const look = () => {
        const line = lines.filter((each) => `${each} `.startsWith(`${word} `))[nth - 1];
        if (line === undefined && ending === null) return;
        listeners.delete(look);
        if (line !== undefined) resolve(line.slice(word.length + 1));
        else
          reject(
            new Error(`the child ended (${JSON.stringify(ending)}) without ${word}: ${errors}`),
          );
      };
      listeners.add(look);
      look();
    });
  return {
    pid: child.pid ?? 0,
    lines,
    errors: () => errors,
    said,
    go: () => child.stdin.write("go\n"),
    kill: () => child.kill("SIGKILL"),
    ended,
  };
}

/** Starts all children, waits until each says `ready`, then lets all go at once. */
export async function startTogether(script: URL, args: readonly object[]): Promise<Child[]> {
  const children = args.map((each) => startChild(script, each));
  await Promise.all(children.map((child) => child.said("ready")));
  for (const child of children) child.go();
  return children;
}

/** Waits for a child that must end by itself and in good order; answers its last line as JSON. */
export async function resultOf<T>(child: Child): Promise<T> {
  const { code, signal } = await child.ended;
  if (code !== 0)
    throw new Error(`child ${child.pid} ended with ${code ?? signal}: ${child.errors()}`);
  return JSON.parse(child.lines.at(-1) ?? "null") as T;
}
