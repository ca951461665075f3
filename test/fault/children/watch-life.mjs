// Lives with a watch in one of several ways, and says what comes of it.
import { writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { openStore, watchPressure } from "../../../dist/index.js";
import { registry } from "../../../dist/pressure/guards.js";
import { forward } from "../../../dist/storage/decorators/forward.js";

const say = (word, value = null) => writeSync(1, `${word} ${JSON.stringify(value)}\n`);
const onNotice = ({ code, message }) => say("notice", { code, message });
const codeOf = (work) => {
  try {
    work();
    return null;
  } catch (error) {
    return [error.code, error.message];
  }
};

let hangs = false;
async function guarded(wrapped = false) {
  const wrap = (storage) => ({
    ...forward(storage),
    write: (batch) => (hangs ? new Promise(() => undefined) : storage.write(batch)),
  });
  const store = await openStore("memory:", wrapped ? { wrap } : {});
  const workflow = await store.createWorkflow("w", { state: { n: 0 } });
  const branch = await workflow.branch({ agent: "a", branch: "x" });
  return { store, branch, guard: branch.guard({ state: () => ({ n: 1 }) }) };
}

const MODES = {
  async implicit() {
    const one = await guarded();
    const two = await guarded();
    await sleep(500);
    say("running", registry.watch?.isImplicit);
    one.guard.release();
    say("still", registry.watch !== undefined);
    two.guard.release();
    say("over", registry.watch === undefined);
    await guarded();
    await sleep(500);
    const watch = watchPressure({ onNotice });
    say("replaced", [registry.watch === watch, registry.watch.isImplicit]);
    say(
      "second",
      codeOf(() => watchPressure()),
    );
    await watch.close();
    await watch.close();
    say("none", [watch.level, watch.stepsStopped, registry.watch === undefined]);
    await watchPressure({ sigterm: false }).close();
    say("listeners", process.listenerCount("SIGTERM"));
  },
  async reserve() {
    const rss = () => process.memoryUsage.rss() / 2 ** 20;
    const before = rss();
    // The heap of a program that holds nothing is far from a third full.
    const watch = watchPressure({
      reserveBytes: 128 * 2 ** 20,
      thresholds: { usage: 0.3, critical: 0.99 },
      onNotice: () => undefined,
      onPressure: ({ releasedBytes, reasons, lateMs, level }) => {
        const late = lateMs >= 300;
        say("released", { releasedBytes, path: reasons[0].path, late, level });
      },
    });
    await sleep(1500);
    say("held", rss() - before > 110);
    globalThis.held = new Array(15e6).fill(0.5);
    // The heap is told of by the main thread; the rest happens while that does not come to anything.
    await sleep(600 - 1);
    const full = rss();
    const until = Date.now() + 1000;
    while (Date.now() < until);
    say("busy", [watch.level, watch.stepsStopped, full > 0]);
    say("given back", rss() - before < 110 + 125);
    await sleep(100);
    say("told");
    await watch.close();
  },
  async throws() {
    const { branch } = await guarded();
    const watch = watchPressure({
      onNotice: (notice) => {
        onNotice(notice);
        throw new Error("no log");
      },
      onPressure: () => {
        throw new Error("no cache");
      },
    });
    process.kill(process.pid, "SIGTERM");
    await sleep(60_000);
    say("not reached", [branch.name, watch.level]);
  },
  async others() {
    await guarded();
    watchPressure({ onNotice });
    process.once("SIGTERM", async () => {
      await sleep(1000);
      say("mine");
      process.exit(9);
    });
    process.kill(process.pid, "SIGTERM");
    process.kill(process.pid, "SIGTERM");
    await sleep(60_000);
  },
  async deadline() {
    await guarded(true);
    hangs = true;
    watchPressure({ onNotice, sigterm: { deadlineMs: 700 } });
    process.kill(process.pid, "SIGTERM");
    setTimeout(() => process.kill(process.pid, "SIGTERM"), 200);
    await sleep(60_000);
  },
  async pass() {
    await guarded(true);
    hangs = true;
    const watch = watchPressure({ onNotice, deadlineMs: 20_000, sigterm: { deadlineMs: 700 } });
    void watch.checkpoint();
    await sleep(10);
    process.kill(process.pid, "SIGTERM");
    await sleep(60_000);
  },
  async idle() {
    await guarded();
    watchPressure();
  },
  async invalid() {
    const tries = [
      { reserveBytes: -1 },
      { reserveBytes: 2 ** 31 },
      { intervalMs: 1 },
      { deadlineMs: 0.5 },
      { steps: "maybe" },
      { exitCode: 300 },
      { sigterm: { deadlineMs: 0 } },
      { thresholds: { usage: 2 } },
    ];
    for (const options of tries)
      say(
        "refused",
        codeOf(() => watchPressure(options)),
      );
    say("none", registry.watch === undefined);
  },
};

await MODES[process.argv[2]]();
