/**
 * Three agents, as processes of their own, scan this project's files and commit
 * every step on their own branches of one embedded store; a supervisor merges
 * their findings into canonical. Then two agents disagree, and a person resolves
 * the conflict. At last three agents book things in a service on loopback, and
 * one of them is killed after its booking is made and before it knows. No
 * network, no model.
 */
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openStore } from "agstate";
import { startService } from "./service.mjs";

const cli = fileURLToPath(new URL("../../dist/bin/agstate.js", import.meta.url));
const program = (name) => fileURLToPath(new URL(name, import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "agstate-demo-"));
const url = `sqlite:${join(folder, ".agstate")}`;
const agents = ["sizes", "imports", "docs"];

function title(text) {
  console.log(`\n== ${text}\n`);
}

/** Runs the command line as a person would, its output going where ours goes. */
function agstate(...args) {
  console.log(`$ agstate ${args.join(" ")}`);
  const { status } = spawnSync(process.execPath, [cli, ...args], {
    stdio: "inherit",
    env: { ...process.env, AGSTATE_STORE: url },
  });
  // 4 says that a merge has conflicts, which one here is meant to have.
  if (status !== 0 && status !== 4) throw new Error(`agstate ${args[0]} ended with ${status}`);
}

/** Starts an agent as a process; `ended` is the signal that killed it, or null when it came to its end. */
function startAgent(name, ...args) {
  const child = spawn(process.execPath, [program(name), url, "scan", ...args], {
    stdio: "inherit",
  });
  const ended = new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", (code, signal) =>
      code ? reject(new Error(`agent ${args.at(-1)} ended with ${code}`)) : resolve(signal),
    );
  });
  return { ended, kill: () => child.kill("SIGKILL") };
}

try {
  title("Three agents, three processes, one store");
  const store = await openStore(url);
  const workflow = await store.createWorkflow("scan", { author: "supervisor" });
  await Promise.all(agents.map((name) => startAgent("agent.mjs", name).ended));
  for (const name of agents) {
    const { ahead } = await workflow.aheadBehind(`${name}/scan`, "canonical");
    console.log(`agent ${name} committed ${ahead} steps`);
  }

  title("The supervisor merges their findings");
  const merged = await workflow.merge(
    agents.map((name) => `${name}/scan`),
    { message: "Take what three agents found" },
  );
  console.log(`${merged.status}, after ${merged.attempts} attempt`);
  await workflow.tag("first-scan", "canonical");
  agstate("log", "--graph", "--oneline");

  title("What one step of one agent changed");
  agstate("diff", "imports/scan~1", "imports/scan");

  title("What an agent knew two steps ago");
  agstate("cat", "docs/scan~2", "/docs/longest/0");

  title("Two agents disagree on one value, and both append to one list");
  const canonical = await workflow.canonical({ author: "supervisor" });
  await canonical.update(
    [
      { op: "set", path: "/release", value: "undecided" },
      { op: "set", path: "/notes", value: [] },
    ],
    { message: "Ask for a decision" },
  );
  for (const [name, release, note] of [
    ["tester", "hold", "One test is slow"],
    ["releaser", "ship", "The changelog is complete"],
  ]) {
    const branch = await workflow.branch({ agent: name, branch: "review" });
    await branch.update(
      [
        { op: "set", path: "/release", value: release },
        { op: "append", path: "/notes", value: note },
      ],
      { message: `Say ${release}` },
    );
  }
  agstate("merge", "tester/review", "releaser/review");

  title("A person resolves it, and nothing of either is lost");
  agstate("resolve", "/release", "--theirs", "releaser/review", "--author", "maintainer");
  agstate("merge", "--continue");
  agstate("cat", "canonical", "/notes");
  agstate("log", "--graph", "--oneline", "-n", "4");

  title("Three agents book for the release; one is killed at the worst moment");
  await (await workflow.canonical({ author: "supervisor" })).update(
    [{ op: "set", path: "/bookings", value: {} }],
    { message: "Ask for bookings" },
  );
  await store.close();
  const things = ["room", "cake", "train"];
  const bookers = new Map();
  const service = await startService(async ({ what }) => {
    if (!what.startsWith("cake")) return;
    // The booking is made. Its agent dies before it hears of it.
    const { kill, ended } = bookers.get("cake");
    kill();
    await ended;
  });
  const startBooker = (thing) => startAgent("booker.mjs", service.url, thing);
  for (const thing of things) bookers.set(thing, startBooker(thing));
  for (const thing of things) {
    const signal = await bookers.get(thing).ended;
    if (signal) {
      console.log(`agent ${thing} was killed by ${signal}: its booking is made, and not recorded`);
    }
  }
  agstate("steps", "cake/release");
  agstate("resume", "cake/release");

  title("Started again, it asks once more with the same key, and goes on");
  await startBooker("cake").ended;
  agstate("steps", "cake/release");
  agstate("merge", ...things.map((thing) => `${thing}/release`));
  agstate("cat", "canonical", "/bookings");
  await service.close();

  title("What the service has counted");
  console.log("agent  paid answers  requests to book  bookings made");
  for (const thing of things) {
    const { requests, effects } = [...service.bookings.values()].find(({ what }) =>
      what.startsWith(thing),
    );
    const counts = [service.paid.get(`which ${thing}`), requests, effects];
    const [answers, asked, made] = counts.map(String);
    console.log(`${thing.padEnd(7)}${answers.padEnd(14)}${asked.padEnd(18)}${made}`);
    const expected = thing === "cake" ? "1,2,1" : "1,1,1";
    if (String(counts) !== expected) throw new Error(`${thing}: ${counts}, not ${expected}`);
  }
  console.log("\nAsked twice, booked once; and no answer of the model was paid for again.");

  title("Everything is checked");
  agstate("fsck");

  title("The same history in Git, with the same ids");
  const repository = join(folder, "scan.git");
  agstate("export", "--git", repository);
  try {
    const git = (...args) => execFileSync("git", ["-C", repository, ...args], { stdio: "inherit" });
    console.log("\n$ git fsck --strict --full && git log --graph --oneline -n 18 canonical");
    git("fsck", "--strict", "--full");
    git("--no-pager", "log", "--graph", "--oneline", "--abbrev=10", "-n", "18", "canonical");
  } catch (error) {
    if (error.code !== "ENOENT") throw error;
    console.log("(git is not installed here, so its own view is left out)");
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
