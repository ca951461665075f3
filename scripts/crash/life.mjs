import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const WORKER = fileURLToPath(new URL("worker.mjs", import.meta.url));

/**
 * Starts a worker: one life of a run.
 *
 * @param hear called with each line that it says, as its words, and a way to kill it
 */
export function startLife(args, hear = () => undefined) {
  const child = spawn(process.execPath, [WORKER, JSON.stringify(args)]);
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text) => {
    errors += text;
  });
  child.stdin.on("error", () => undefined);
  const said = [];
  const kill = () => child.kill("SIGKILL");
  createInterface({ input: child.stdout }).on("line", (text) => {
    const words = text.split(" ");
    said.push(words);
    hear(words, kill);
  });
  /** How it ended: `killed`, `stopped` with why, or `over` with the run's result. */
  const ended = new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => {
      const last = (word) => {
        const words = said.findLast(([first]) => first === word);
        return words === undefined ? undefined : JSON.parse(words.slice(1).join(" "));
      };
      if (signal === "SIGKILL") resolve({ how: "killed", said });
      else if (code !== 0) reject(new Error(`a worker ended with ${code ?? signal}: ${errors}`));
      else if (last("stopped")) resolve({ how: "stopped", why: last("stopped"), said });
      else resolve({ how: "over", result: last("result"), said });
    });
  });
  return { ended, go: () => child.stdin.write("go\n"), kill };
}
