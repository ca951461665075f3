/** How the children of the process tests talk to their parent: by lines, written at once. */
import { once } from "node:events";
import { writeSync } from "node:fs";

/** What the parent asks for. */
export const args = JSON.parse(process.argv[2]);

/** Says a line; when this returns, the line outlives a kill. */
export function say(line) {
  writeSync(1, `${line}\n`);
}

// A child does not outlive its parent, whatever became of it.
process.stdin.on("end", () => process.exit(1)).resume();
process.stdin.unref();

/** Says that this process is ready, and waits until the parent lets all begin. */
export async function whenAllAreReady() {
  say("ready");
  process.stdin.ref();
  await once(process.stdin, "data");
  process.stdin.unref();
}
