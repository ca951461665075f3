/**
 * One agent of the demo: reads the project's own files, folder by folder, by
 * one strategy, and commits what it knows after each folder on its own branch.
 *
 *     node agent.mjs STORE WORKFLOW STRATEGY
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { openStore } from "agstate";

const root = fileURLToPath(new URL("../..", import.meta.url));
const folders = ["src/core", "src/storage", "src/objects", "src/refs", "src/cli"];

/** What each strategy learns from a file; the state holds what it knows so far. */
const strategies = {
  // How large is everything, by kind of file?
  sizes: (known, file, text) => {
    known.kinds ??= {};
    const kind = extname(file) || "other";
    known.kinds[kind] ??= { files: 0, lines: 0, bytes: 0 };
    const sum = known.kinds[kind];
    sum.files++;
    sum.lines += text.split("\n").length - 1;
    sum.bytes += Buffer.byteLength(text);
  },
  // Which folders import from which?
  imports: (known, file, text) => {
    known.edges ??= {};
    const part = (path) => path.split("/")[1].replace(/\.js$/, "");
    const from = part(file);
    for (const [, path] of text.matchAll(/from "((?:\.\.\/)+[^"]+)"/g)) {
      const to = part(join(file, "..", path));
      if (to !== from) known.edges[`${from} -> ${to}`] = (known.edges[`${from} -> ${to}`] ?? 0) + 1;
    }
  },
  // Which public functions have the longest explanations?
  docs: (known, file, text) => {
    known.longest ??= [];
    for (const [, comment, name] of text.matchAll(
      /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\nexport (?:async )?function (\w+)/g,
    )) {
      known.longest.push({ name, file, words: comment.split(/\s+/).length - 1 });
    }
    known.longest.sort((a, b) => b.words - a.words || (a.name < b.name ? -1 : 1));
    known.longest.splice(5);
  },
};

function* filesBelow(folder) {
  for (const name of readdirSync(join(root, folder)).sort()) {
    const path = `${folder}/${name}`;
    if (statSync(join(root, path)).isDirectory()) yield* filesBelow(path);
    else yield path;
  }
}

const [url, workflowId, strategy] = process.argv.slice(2);
const store = await openStore(url, { create: false });
const workflow = await store.workflow(workflowId);
const branch = await workflow.branch({ agent: strategy, branch: "scan", from: "canonical" });

for (const folder of folders) {
  const started = Date.now();
  const state = await branch.state();
  const known = state[strategy] ?? {};
  const files = [...filesBelow(folder)];
  for (const file of files) {
    strategies[strategy](known, file, readFileSync(join(root, file), "utf8"));
  }
  await branch.commit({
    state: { ...state, [strategy]: known, scanned: [...(state.scanned ?? []), folder] },
    message: `Scan ${folder}: ${files.length} files`,
    step: {
      action: "read",
      record: {
        name: strategy,
        input: { folder },
        output: { files: files.length },
        milliseconds: Date.now() - started,
      },
    },
  });
}
await store.close();
