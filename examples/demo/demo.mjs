/**
 * Three agents, as processes of their own, scan this project's files and commit
 * every step on their own branches of one embedded store; a supervisor merges
 * their findings into canonical. Then two agents disagree, and a person resolves
 * the conflict. No network, no model.
 */
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openStore } from "agstate";

const cli = fileURLToPath(new URL("../../dist/bin/agstate.js", import.meta.url));
const agent = fileURLToPath(new URL("agent.mjs", import.meta.url));
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

function runAgent(name) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [agent, url, "scan", name], { stdio: "inherit" });
    child.on("error", reject);
    child.on("exit", (code) =>
      code === 0 ? resolve() : reject(new Error(`agent ${name} ended with ${code}`)),
    );
  });
}

try {
  title("Three agents, three processes, one store");
  const store = await openStore(url);
  const workflow = await store.createWorkflow("scan", { author: "supervisor" });
  await Promise.all(agents.map(runAgent));
  for (const name of agents) {
    const { ahead } = await workflow.aheadBehind(`${name}/scan`, "canonical");
    console.log(`agent ${name} committed ${ahead} steps`);
  }

  title("The supervisor merges their findings");
  const merged = await workflow.merge(
    agents.map((name) => `${name}/scan`),
    { message: "Take the findings of three agents together" },
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
  await store.close();
  agstate("merge", "tester/review", "releaser/review");

  title("A person resolves it, and nothing of either is lost");
  agstate("resolve", "/release", "--theirs", "releaser/review", "--author", "maintainer");
  agstate("merge", "--continue");
  agstate("cat", "canonical", "/notes");
  agstate("log", "--graph", "--oneline", "-n", "4");

  title("Everything is checked");
  agstate("fsck");

  title("The same history in Git, with the same ids");
  const repository = join(folder, "scan.git");
  agstate("export", "--git", repository);
  try {
    const git = (...args) => execFileSync("git", ["-C", repository, ...args], { stdio: "inherit" });
    console.log("\n$ git fsck --strict --full && git log --graph --oneline --abbrev=10 canonical");
    git("fsck", "--strict", "--full");
    git("--no-pager", "log", "--graph", "--oneline", "--abbrev=10", "canonical");
  } catch (error) {
    if (error.code !== "ENOENT") throw error;
    console.log("(git is not installed here, so its own view is left out)");
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
