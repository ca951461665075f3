import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { exportWorkflow } from "../../dist/git/export-workflow.js";
import { openStore } from "../../dist/index.js";
import { encodeCommit } from "../../dist/objects/commit.js";
import { hashObject } from "../../dist/objects/hash.js";
import { encodeTree } from "../../dist/objects/tree.js";
import { textSource } from "./text.mjs";

const WORKFLOW = "bench";
const CANONICAL = "refs/heads/canonical";
const SIDE = "refs/heads/agents/agent-1/side";
/** How many commits one turn writes: they share a transaction, and stand in the file as if each had its own. */
const GROUP = 500;
const STATE_CHARACTERS = 120;
const FORK_COMMITS = 5;

/**
 * Makes a long history with merges in a store, and exports it to a Git repository, in a process
 * of its own: from one that has grown large, starting a command takes several times as long, and
 * the command is what is to be measured.
 *
 * @param what `url`, `repository`, `commits`, `merges` and `forks`, as of `writeLongHistory`
 * @returns what `writeLongHistory` answers
 */
export function makeLongHistory(what) {
  const script = fileURLToPath(import.meta.url);
  const args = [script, JSON.stringify(what)];
  const run = spawnSync(process.execPath, args, { encoding: "utf8" });
  if (run.error !== undefined) throw run.error;
  if (run.status !== 0) throw new Error(`the history could not be made: ${run.stderr}`);
  return JSON.parse(run.stdout);
}

/**
 * Writes a long history with merges through the storage, as agents would leave it: each commit
 * a write of its own with its state, on canonical; now and then one on a side branch, merged by
 * the commit after. Dates rise by a second.
 *
 * @param forks how many first parents behind canonical's head a branch of 5 commits begins
 * @returns the workflow's name, canonical's head, and the heads of the forks in their order
 */
async function writeLongHistory(url, { commits, merges, forks }) {
  const store = await openStore(url);
  const workflow = await store.createWorkflow(WORKFLOW);
  const { storage } = workflow.internals;
  const root = (await workflow.canonical()).head.id;
  const [first] = await storage.readCommits(WORKFLOW, [root]);
  const writer = new CommitWriter(storage, first.time);

  const line = [first];
  const every = Math.floor(commits / merges);
  while (writer.made < commits - 1) {
    const head = line.at(-1);
    if (writer.made % every === every - 2) {
      const side = await writer.commit(SIDE, [head]);
      line.push(await writer.commit(CANONICAL, [head, side]));
    } else {
      line.push(await writer.commit(CANONICAL, [head]));
    }
  }
  const heads = [];
  for (const [k, back] of forks.entries()) {
    let head = line[Math.max(0, line.length - 1 - back)];
    for (let i = 0; i < FORK_COMMITS; i++) {
      head = await writer.commit(`refs/heads/agents/agent-2/fork-${k}`, [head]);
    }
    heads.push(head.id);
  }
  await writer.flush();
  await store.close();
  return { workflow: WORKFLOW, canonical: line.at(-1).id, forks: heads };
}

class CommitWriter {
  made = 0;
  #pending = [];
  #text = textSource(1);

  constructor(storage, time) {
    this.storage = storage;
    this.time = time;
  }

  async commit(ref, parents) {
    const number = ++this.made;
    const state = object(
      "blob",
      Buffer.from(JSON.stringify({ n: number, note: this.#text(STATE_CHARACTERS) })),
    );
    const tree = object("tree", encodeTree([{ name: "state", type: "blob", id: state.id }]));
    const time = this.time + number;
    const body = encodeCommit({
      tree: tree.id,
      parents: parents.map((parent) => parent.id),
      author: "agent-1",
      committer: "agent-1",
      workflow: WORKFLOW,
      authorTime: time,
      committerTime: time,
      nonce: number.toString(16).padStart(32, "0"),
      nextStep: 1,
      inFlight: [],
      message: `step ${number}`,
    });
    const commit = {
      id: hashObject("commit", body),
      body,
      parents: parents.map((parent) => parent.id),
      generation: 1 + Math.max(...parents.map((parent) => parent.generation)),
      time,
      externalId: null,
      inline: [tree],
    };
    this.#pending.push(
      this.storage.write({
        workflow: WORKFLOW,
        objects: [state],
        moves: [
          {
            ref,
            expect: { kind: "any" },
            target: commit.id,
            commits: [commit],
            incarnation: "0".repeat(32),
            maxStep: 0,
            log: { actor: "agent-1", reason: "commit", time: 1000 * time, trace: "" },
          },
        ],
        atomic: true,
      }),
    );
    if (this.#pending.length >= GROUP) await this.flush();
    return commit;
  }

  async flush() {
    for (const { moves } of await Promise.all(this.#pending.splice(0))) {
      if (moves[0].outcome !== "moved")
        throw new Error(`a commit did not land: ${moves[0].outcome}`);
    }
  }
}

function object(type, body) {
  return { id: hashObject(type, body), type, body };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { url, repository, ...shape } = JSON.parse(process.argv[2]);
  const history = await writeLongHistory(url, shape);
  const store = await openStore(url, { create: false });
  await exportWorkflow(await store.workflow(history.workflow), repository);
  await store.close();
  process.stdout.write(JSON.stringify(history));
}
