import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { startChild } from "../support/child-processes.js";
import { storePlace } from "../support/sqlite-store.js";
import { parseTrace, type SystemCall, tracer, whyNoTrace } from "../support/system-calls.js";

const ACKNOWLEDGE = new URL("./children/acknowledge.mjs", import.meta.url);

const COMMITS = 20;
const WRITES = ["write", "pwrite64", "writev", "pwritev", "pwritev2"];
const SYNCS = ["fsync", "fdatasync"];

/** What happened to the write-ahead log before each acknowledgement, since the one before: W a write, S a sync. */
function logCallsByAcknowledgement(calls: readonly SystemCall[]): string[] {
  const before: string[] = [];
  let since = "";
  for (const { name, file, args } of calls) {
    if (file.endsWith("-wal")) since += SYNCS.includes(name) ? "S" : "W";
    if (!args.includes('"ACK ')) continue;
    before.push(since);
    since = "";
  }
  return before;
}

/** Runs a child that commits and acknowledges into a new store; answers its writes and syncs. */
async function traceCommits(
  path: string,
  commits: number,
  skip: (reason: string) => never,
): Promise<SystemCall[]> {
  const reason = whyNoTrace();
  if (reason !== null) {
    console.log(`skipped: ${reason}`);
    skip(reason);
  }
  const trace = `${storePlace()}.trace`;
  const child = startChild(ACKNOWLEDGE, { path, commits }, tracer([...WRITES, ...SYNCS], trace));
  expect(await child.ended, child.errors()).toEqual({ code: 0, signal: null });
  return parseTrace(readFileSync(trace, "utf8"));
}

describe("the write-ahead log", () => {
  it("is synced after its last write before each acknowledgement", async ({ skip }) => {
    const before = logCallsByAcknowledgement(await traceCommits(storePlace(), COMMITS, skip));
    expect(before).toHaveLength(COMMITS + 1);
    for (const calls of before) expect(calls).toMatch(/W.*S$/);
    console.log(`calls on the log before each acknowledgement: ${before.join(" ")}`);
  });
});

describe("a new store", () => {
  it("has all its directories' entries synced before the first acknowledgement", async ({
    skip,
  }) => {
    const path = join(storePlace(), "a", "b");
    const calls = await traceCommits(path, 0, skip);
    const synced = calls
      .slice(
        0,
        calls.findIndex(({ args }) => args.includes('"ACK ')),
      )
      .filter(({ name }) => SYNCS.includes(name))
      .map(({ file }) => file);
    // `store` of `storePlace` is new, too, so its parent must know it.
    const [b, a, store, parent] = [
      path,
      dirname(path),
      dirname(dirname(path)),
      dirname(dirname(dirname(path))),
    ];
    expect(synced).toEqual(expect.arrayContaining([parent, store, a, b]));
  });
});
