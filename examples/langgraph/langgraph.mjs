/**
 * A LangGraph graph on agstate: one process stops at a question, another brings the answer; then time
 * travel to before the question, two forks that each go their own way, and what the `agstate` command
 * tells of them. An embedded store, no network, no model.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Command } from "@langchain/langgraph";
import { openStore } from "agstate";
import { AgstateSaver } from "agstate/langgraph";
import { refundGraph } from "./refund.mjs";

const cli = fileURLToPath(new URL("../../dist/bin/agstate.js", import.meta.url));
const program = fileURLToPath(new URL("process.mjs", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "agstate-langgraph-"));
const url = `sqlite:${join(folder, ".agstate")}`;
const thread = "refund-1017";

function title(text) {
  console.log(`\n== ${text}\n`);
}

/** Runs the command line as a person would, its output going where ours goes. */
function agstate(...args) {
  console.log(`$ agstate ${args.join(" ")}`);
  const env = { ...process.env, AGSTATE_STORE: url };
  const { status } = spawnSync(process.execPath, [cli, ...args], { stdio: "inherit", env });
  if (status !== 0) throw new Error(`agstate ${args[0]} ended with ${status}`);
}

/** Runs the graph in a process of its own, which ends before the next line here. */
function inAProcess(...args) {
  console.log(`$ node process.mjs ${args.map((each) => JSON.stringify(each)).join(" ")}`);
  execFileSync(process.execPath, [program, url, thread, ...args], { stdio: "inherit" });
}

try {
  title("One process runs the graph until it waits for a person");
  inAProcess("begin", "Order 1017 came too late. I want my money back.");

  title("Another one brings the answer, and the graph goes on where it was");
  inAProcess("answer", "no", "the clerk");

  title("Time travel: every step is there");
  const store = await openStore(url);
  const graph = refundGraph(new AgstateSaver(store));
  const config = { configurable: { thread_id: thread } };
  const history = [];
  for await (const snapshot of graph.getStateHistory(config)) history.push(snapshot);
  const workflow = await store.workflow(thread);
  await workflow.tag("refused", "langgraph/latest");
  for (const { metadata, next, values } of history) {
    const where = next.length > 0 ? `before ${next}` : "at the end";
    console.log(
      `  step ${String(metadata.step).padStart(2)}  ${where.padEnd(16)} ${values.notes?.at(-1) ?? ""}`,
    );
  }

  title("Two forks from before the question, each with an offer of its own");
  const before = history.find(({ next }) => next.includes("ask"));
  const offers = {
    half: { offer: { pay: 24 }, by: "the clerk" },
    voucher: { offer: { pay: 0, voucher: 48 }, by: "the manager" },
  };
  for (const [name, { offer, by }] of Object.entries(offers)) {
    const change = { offer, notes: [`fork: offer ${JSON.stringify(offer)}`] };
    const fork = await graph.updateState(before.config, change, "assess");
    await graph.invoke(null, fork);
    const answer = new Command({ resume: { may: true, by } });
    const { notes } = await graph.invoke(answer, config);
    for (const note of notes) console.log(`  ${note}`);
    // A name is easier to type than a checkpoint's id.
    await workflow.tag(name, "langgraph/latest");
    console.log(`  (tagged ${name})\n`);
  }
  await store.close();

  title("The thread is a history: a checkpoint a commit, a fork a branch");
  agstate("log", "--graph", "--oneline", "refused", ...Object.keys(offers));

  title("What the two forks differ in");
  agstate("diff", "half", "voucher");

  title("Which checkpoint wrote each note of a fork");
  agstate("blame", "voucher", "/notes");

  title("What was offered before the fork");
  agstate("cat", "voucher~3", "/offer");

  title("Everything is checked");
  agstate("fsck");

  title("The same history in Git, with the same ids");
  const repository = join(folder, "refund.git");
  agstate("export", "--git", repository);
  try {
    const git = (...args) => execFileSync("git", ["-C", repository, ...args], { stdio: "inherit" });
    console.log("\n$ git fsck --strict && git log --graph --oneline refused half voucher");
    git("fsck", "--strict");
    const log = ["log", "--graph", "--oneline", "--abbrev=10", "--no-decorate"];
    git("--no-pager", ...log, "refused", ...Object.keys(offers));
  } catch (error) {
    if (error.code !== "ENOENT") throw error;
    console.log("(git is not installed here, so its own view is left out)");
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
