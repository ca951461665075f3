/**
 * Runs workflows in a process of its own, a round each time it is told to.
 *
 * Forked by `steps-process.mjs`, which says as JSON who runs and with what options. It
 * answers each message: `round`, with the times of the steps and of the whole and with what the
 * processor did; `check`, when the steps of the last round are on record as they were done; `close`.
 */
import { randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { callSource } from "./steps-work.mjs";

const { peer, workflows, steps, options } = JSON.parse(process.argv[2]);
const { openRuns } = peer ? await import("./steps-dbos.mjs") : await import("./steps-agstate.mjs");
const runs = await openRuns(options);
const sources = Array.from({ length: workflows }, (_, k) => callSource(k + 1, steps));
let last = [];

const answers = {
  async round() {
    const given = sources.map((next) => ({ id: randomUUID(), calls: next() }));
    const times = [];
    const timed = async (step) => {
      const since = performance.now();
      await step();
      times.push(performance.now() - since);
    };
    const before = process.cpuUsage();
    const since = performance.now();
    await Promise.all(given.map(({ id, calls }) => runs.run(id, calls, timed)));
    const total = performance.now() - since;
    const { user, system } = process.cpuUsage(before);
    last = given;
    return { times, total, cpu: (user + system) / 1000 };
  },

  async check() {
    for (const { id, calls } of last) {
      const done = calls.map(({ output }) => output);
      if (!isDeepStrictEqual(await runs.recorded(id), done)) {
        throw new Error("the steps on record are not those that were done");
      }
    }
  },

  async close() {
    await runs.close();
    process.disconnect();
  },
};

process.on("message", async (what) => {
  const answer = await answers[what]();
  if (process.connected) process.send(answer ?? {});
});
process.send({});
