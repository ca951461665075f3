/**
 * A clerk refunds orders by rules that stand in a document. In the evening it hands its branch off; at night the
 * document changes; in the morning another clerk is to go on, and is told before any step runs. A person looks at
 * what has changed, and agrees. Everything is on this computer: no network, no model.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openStore } from "agstate";

const cli = fileURLToPath(new URL("../../dist/bin/agstate.js", import.meta.url));
const clerk = fileURLToPath(new URL("clerk.mjs", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "agstate-handoff-"));
const url = `sqlite:${join(folder, ".agstate")}`;

function title(text) {
  console.log(`\n== ${text}\n`);
}

/** A document with a version, as an intranet has them. */
const rules = { etag: '"monday"', text: "Refund what arrived broken, up to 100." };
const server = createServer((request, response) => {
  response.setHeader("ETag", rules.etag);
  if (request.headers["if-none-match"] === rules.etag) response.writeHead(304).end();
  else response.end(rules.text);
});
server.listen(0, "127.0.0.1");
await once(server, "listening");
const host = `127.0.0.1:${server.address().port}`;
// This computer's own addresses are asked only where somebody says so.
const checkers = join(folder, "checkers.json");
writeFileSync(checkers, JSON.stringify({ allow: [host] }));

/** Runs a program that must end as it is expected to, its output going where ours goes; the server answers meanwhile. */
async function run(words, args, expected) {
  console.log(`$ ${words}`);
  const child = spawn(process.execPath, args, {
    stdio: "inherit",
    env: { ...process.env, AGSTATE_STORE: url, AGSTATE_CHECKERS: checkers },
  });
  const [status] = await once(child, "exit");
  if (status !== expected) throw new Error(`${words} ended with ${status}, not ${expected}`);
}
const agstate = (args, expected = 0) => run(`agstate ${args.join(" ")}`, [cli, ...args], expected);
const shift = (name, expected = 0) =>
  run(`node clerk.mjs ${name}`, [clerk, url, `http://${host}/rules`, checkers, name], expected);

try {
  const store = await openStore(url);
  await store.createWorkflow("refunds", {
    state: { orders: { A1: "broken, 40", B2: "too late, 15", C3: "broken, 80" }, refunded: {} },
  });
  await store.close();

  title("The evening clerk refunds the first order, and hands off");
  await shift("evening");
  await agstate(["show", "handoff-clerk-refunds-1"]);

  title("At night the rules change; in the morning another clerk is to go on");
  Object.assign(rules, { etag: '"tuesday"', text: "Refund what arrived broken, up to 60." });
  await shift("morning", 1);
  await agstate(["resume", "clerk/refunds", "--check"], 1);

  title("Somebody is asked, and looks at what has changed");
  const again = await openStore(url);
  const [{ id: review }] = await (await again.workflow("refunds")).reviews({ open: true });
  await again.close();
  await agstate(["review"]);
  await agstate(["review", "show", review]);
  await agstate([
    ...["review", "approve", review, "--actor", "mara"],
    ...["--reason", "read it: the new limit counts from now on"],
  ]);

  title("Now it goes on, with the rules as they are");
  await shift("morning");
  await agstate(["cat", "clerk/refunds", "/refunded"]);

  title("The whole story");
  await agstate(["log", "clerk/refunds", "--first-parent", "-n", "20"]);
  await agstate(["log", "--all", "--oneline"]);
  await agstate(["fsck"]);
  try {
    const repository = join(folder, "refunds.git");
    await agstate(["export", "--git", repository]);
    execFileSync("git", ["-C", repository, "fsck", "--strict", "--full"], { stdio: "inherit" });
  } catch (error) {
    if (error.code !== "ENOENT") throw error;
    console.log("(git is not installed here, so its own view is left out)");
  }
} finally {
  server.close();
  server.closeAllConnections();
  rmSync(folder, { recursive: true, force: true });
}
