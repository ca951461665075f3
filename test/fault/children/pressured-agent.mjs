// An agent that watches memory: its steps write a line each to WORK/effects; its notes are in no commit.
//
// grow: in its fourth step it takes more and more memory, until the kernel kills the process.
// resume: says what the store holds, and runs again to the end.
// told: waits in its second step to be told to end.
// exit: like grow, with the process ending by itself once everything is in the store.
import { createHash } from "node:crypto";
import { appendFileSync, existsSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openStore, watchPressure } from "../../../dist/index.js";

const mode = process.argv[2];
const EXIT_CODE = 75;
const say = (word, value) => writeSync(1, `${word} ${JSON.stringify(value)}\n`);
// Of a note's members in the order in which they come back: that of their names.
const digest = (value) => createHash("sha256").update(JSON.stringify(value)).digest("hex");
const effects = join(process.env.WORK, "effects");
const lines = () => (existsSync(effects) ? readFileSync(effects, "utf8").trim().split("\n") : []);

const store = await openStore(`sqlite:${join(process.env.WORK, "store")}`);
const notes = [];
const held = [];

if (mode === "resume") {
  const workflow = await store.workflow("w");
  const head = await workflow.commitAt("a/x");
  const state = await workflow.stateAt("a/x");
  const { problems } = await workflow.fsck();
  const { message, checkpointReason: reason, inFlight } = head;
  say("found", {
    reason,
    message,
    inFlight,
    digest: digest(state.notes),
    notes: state.notes.length,
  });
  say("problems", problems);
  const branch = await workflow.branch("a/x");
  say("answer", await work(workflow, branch));
  say("effects", lines());
} else {
  const workflow = await store.createWorkflow("w", { state: { notes: [] } });
  const branch = await workflow.branch({ agent: "a", branch: "x" });
  watchPressure({
    onNotice: ({ code, message }) => say("notice", { code, message }),
    onPressure: ({ reason, level, releasedBytes }) =>
      say("pressure", { reason, level, releasedBytes }),
    ...(mode === "exit" && { exitCode: EXIT_CODE }),
  });
  branch.guard({
    state: () => {
      const taken = [...notes];
      say("asked", { digest: digest(taken), notes: taken.length });
      return { notes: taken };
    },
  });
  try {
    say("answer", await work(workflow, branch));
  } catch (error) {
    say("error", error.code);
  }
}
await store.close();

function work(workflow, branch) {
  return workflow.run(branch, async (ctx) => {
    for (let i = 1; i <= 6; i++) {
      const spec = { name: `step ${i}`, action: "write", input: i, inDoubt: "retry" };
      await ctx.step(spec, async () => {
        if (mode !== "resume") await live(i);
        appendFileSync(effects, `${i}\n`);
        return i;
      });
    }
    return "done";
  });
}

async function live(i) {
  for (let n = 0; n < 200; n++) {
    notes.push({
      n,
      step: i,
      text: `${createHash("sha256").update(`${i} ${n}`).digest("base64")} `.repeat(20),
    });
  }
  if (mode === "told" && i === 2) {
    say("waiting", i);
    await sleep(1500);
  }
  if (mode !== "told" && i === 4) {
    for (let n = 0; ; n++) {
      held.push(Buffer.alloc(512 * 1024, n));
      // A note of the size of an agent's, now and then.
      if (n % 10 === 0) notes.push({ n, step: i, text: "taken while memory was running out" });
      await sleep(10);
    }
  }
}
