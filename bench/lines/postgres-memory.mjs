import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { DEFAULT_LIMITS } from "../../dist/core/limits.js";
import { dropSchemas, schemaUrl } from "../lib/postgres-server.mjs";

const AGENTS = 64;
const RESIDENT_AT_MOST = 1.2;
/** What a commit adds to the cache of objects, roughly. */
const STATE_BYTES = 1024;
const CHILD = fileURLToPath(new URL("../lib/memory-child.mjs", import.meta.url));
const SCHEMA = "bench_memory";

/**
 * The memory of a process of its own that commits and commits, with a cache of objects of the size that
 * comes with agstate, and with one so small that it is full when the process is first looked at.
 *
 * What the second gains is all that is not the cache's.
 *
 * @param marks after how many commits it is looked at; the last is compared with the first
 */
export async function memory(report, server, marks) {
  const [first, last] = [marks[0], marks.at(-1)].map((count) => count.toLocaleString("en-US"));
  report.heading(`Memory of a process with ${AGENTS} agents, after ${first} and ${last} commits`);
  const small = Math.round((marks[0] * STATE_BYTES) / 2);
  for (const [cache, bytes] of [
    ["", DEFAULT_LIMITS.cacheMaxBytes],
    [", small cache", small],
  ]) {
    const { told, most } = await commitAlone(server, bytes, marks);
    const mib = (count) => `${(count / 2 ** 20).toFixed(0)} MiB`;
    const shown = told.map(
      ({ commits, resident, kept }) =>
        `${commits.toLocaleString("en-US")} commits: ${mib(resident)}, in use ${mib(kept)}`,
    );
    report.note(
      `cache of ${mib(bytes)}; resident, and in use after a full collection: ${shown.join("; ")}.`,
    );
    const [before, after] = [told[0], told.at(-1)];
    const line = `memory${cache}: resident at ${last} over ${first}`;
    report.atMost(line, after.resident / before.resident, "x", RESIDENT_AT_MOST);
    report.figure(`memory${cache}: in use at ${last} over ${first}`, after.kept / before.kept, "x");
    report.figure(`memory${cache}: resident after ${first}`, before.resident, "bytes");
    report.figure(`memory${cache}: resident after ${last}`, after.resident, "bytes");
    report.figure(`memory${cache}: resident, the most`, most, "bytes");
  }
}

async function commitAlone(server, cacheMaxBytes, marks) {
  const url = schemaUrl(server, SCHEMA);
  const child = fork(CHILD, [url, ...[AGENTS, cacheMaxBytes, ...marks].map(String)], {
    execArgv: ["--expose-gc"],
  });
  // It must not outlive this process.
  const kill = () => child.kill();
  process.on("exit", kill);
  try {
    let answer;
    child.on("message", (message) => {
      answer = message;
    });
    const [code, signal] = await once(child, "exit");
    if (answer === undefined) {
      throw new Error(`the process that commits ended with ${signal ?? `status ${code}`}`);
    }
    return answer;
  } finally {
    process.removeListener("exit", kill);
    await dropSchemas(server, [SCHEMA]);
  }
}
