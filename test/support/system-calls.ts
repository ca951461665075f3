import { spawnSync } from "node:child_process";

/** A system call on a file, in the order in which the calls ended. */
export interface SystemCall {
  readonly name: string;
  /** The file that the descriptor stands for. */
  readonly file: string;
  /** Everything between the parentheses. */
  readonly args: string;
}

/** Why system calls cannot be traced here; null when they can. */
export function whyNoTrace(): string | null {
  const { error, status, stderr } = spawnSync("strace", ["-y", "-o", "/dev/null", "true"], {
    encoding: "utf8",
  });
  if (error !== undefined) return `strace cannot be run: ${error.message}`;
  return status === 0 ? null : `strace may not trace here: ${stderr.trim()}`;
}

/** The command, to be put before another, that writes a trace of the calls named into a file. */
export function tracer(calls: readonly string[], out: string): string[] {
  return ["strace", "-f", "-y", "-s", "64", "-e", `trace=${calls.join(",")}`, "-o", out];
}

/** Reads what `strace -f -y` wrote. Calls that failed are left out. */
export function parseTrace(text: string): SystemCall[] {
  const begun = new Map<string, string>();
  const calls: SystemCall[] = [];
  for (const line of text.split("\n")) {
    const [, thread = "", rest = ""] = /^(\d+)\s+(.*)$/.exec(line) ?? [];
    const cut = /^(.*) <unfinished \.\.\.>$/.exec(rest);
    if (cut !== null) {
      begun.set(thread, cut[1]!);
      continue;
    }
    const resumed = /^<\.\.\. \w+ resumed>(.*)$/.exec(rest);
    const whole = resumed === null ? rest : `${begun.get(thread)}${resumed[1]}`;
    const call = /^(\w+)\((\d+<([^>]*)>.*)\)\s+= (\d+)/.exec(whole);
    if (call !== null) calls.push({ name: call[1]!, file: call[3]!, args: call[2]! });
  }
  return calls;
}
