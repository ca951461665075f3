import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it, onTestFinished } from "vitest";
import { CliSandbox } from "../support/cli.js";

const MAIN = fileURLToPath(new URL("../../dist/bin/agstate.js", import.meta.url));
const INDEX = new URL("../../dist/index.js", import.meta.url).href;

const running = new Set<ChildProcess>();
afterEach(() => {
  for (const child of running) child.kill("SIGKILL");
});

/** `agstate watch` in a process of its own, and what it has said until now. */
function startWatch(box: CliSandbox, args: readonly string[]) {
  const child = spawn(process.execPath, [MAIN, "watch", ...args], { cwd: box.directory });
  running.add(child);
  let [said, errors] = ["", ""];
  let heard: () => void = () => undefined;
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    said += text;
    heard();
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  const ended = once(child, "close").then(([code, signal]) => {
    running.delete(child);
    heard();
    return { code, signal, errors };
  });
  const lines = () => said.split("\n").slice(0, -1);
  return {
    child,
    ended,
    /** Waits until it has said so many lines. */
    async lines(count: number): Promise<string[]> {
      while (lines().length < count) {
        if (!running.has(child)) throw new Error(`it ended after ${said}: ${errors}`);
        await new Promise<void>((resolve) => {
          heard = resolve;
        });
      }
      return lines();
    },
  };
}

function sandbox(): CliSandbox {
  const box = new CliSandbox();
  onTestFinished(() => box.remove());
  box.ok(["init"]);
  box.ok(["workflow", "create", "trip-42"]);
  return box;
}

describe("agstate watch", () => {
  it("tells, in one process, of what others do, as it happens, until it is interrupted", async () => {
    const box = sandbox();
    const watch = startWatch(box, ["--from-start"]);
    await watch.lines(2);
    box.ok(["branch", "booker/try-1"]);
    expect((await watch.lines(3))[2]).toMatch(
      /^[0-9a-f]{10} {2}agents\/booker\/try-1 {2}\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ {2}booker {2}branch: created/,
    );
    box.ok(["commit", "-", "-b", "booker/try-1", "-m", "Find flights\u001b[2J"], { input: "{}" });
    box.ok(["commit", "-", "-b", "booker/try-1", "-m", "Find a hotel"], { input: '{"n":1}' });
    box.ok(["branch", "-d", "booker/try-1"]);
    const lines = await watch.lines(6);
    expect(lines[3]).toMatch(/ {2}booker {2}commit$/);
    expect(lines[4]).toMatch(/ {2}Find a hotel$/);
    expect(lines[5]).toMatch(/^deleted {5}agents\/booker\/try-1 {2}.* {2}branch: deleted$/);
    watch.child.kill("SIGINT");
    expect(await watch.ended).toEqual({ code: 0, signal: null, errors: "" });
  });

  it("begins now, tells of what matches, a JSON value a line, and ends after so many", async () => {
    const box = sandbox();
    const watch = startWatch(box, ["booker/*", "--json", "-n", "2"]);
    // It may begin after some of these.
    for (let n = 1; n < 50 && running.has(watch.child); n++) {
      box.ok(["commit", "-", "-m", `Elsewhere ${n}`], { input: `{"n":${n}}` });
      box.ok(["branch", `booker/try-${n}`]);
      await sleep(100);
    }
    const moves = (await watch.lines(2).catch(() => [])).map((line) => JSON.parse(line));
    expect(await watch.ended).toEqual({ code: 0, signal: null, errors: "" });
    expect(moves).toHaveLength(2);
    for (const move of moves) {
      expect(move).toMatchObject({ seq: 1, old: null, actor: "booker" });
      expect(move.ref).toBe(`refs/heads/${move.shortName}`);
      expect(move.shortName).toMatch(/^agents\/booker\/try-\d+$/);
      expect(new Date(move.date).toISOString()).toBe(move.date);
    }
  });

  it("fits 80 columns", async () => {
    const box = sandbox();
    const name = "booker/try-1";
    box.ok(["branch", name]);
    const watch = startWatch(box, [name, "-n", "1"]);
    for (let n = 0; n < 50 && running.has(watch.child); n++) {
      box.ok(["commit", "-", "-b", name, "-m", "Ask for the name"], { input: `{"n":${n}}` });
      await sleep(100);
    }
    const [line] = await watch.lines(1);
    expect(line).toMatch(/^\w+ {2}agents\/booker\/try-1 {2}\d\d:\d\d:\d\dZ {2}booker {2}\S/);
    expect(line?.length).toBeLessThanOrEqual(80);
  });

  it("ends quietly when its reader goes", () => {
    const box = sandbox();
    const result = box.shell(`
      { $AGSTATE watch --from-start; echo "exit $?" >&2; } | head -n 1 &
      for n in $(seq 50); do
        [ -n "$(jobs -r)" ] || break
        echo "$n" | $AGSTATE commit - -m more >/dev/null
      done
      wait`);
    expect(result.stderr).toBe("exit 0\n");
    expect(result.stdout).toMatch(/^[0-9a-f]{10} {2}audit\/workflow {2}.*\n$/);
  });

  it("says in one line what is wrong with a pattern", () => {
    const box = sandbox();
    const result = box.run(["watch", "a b"]);
    expect(result).toMatchObject({ status: 2, stdout: "" });
    expect(result.stderr).toMatch(/^agstate: ref pattern "a b" .*\(INVALID_NAME\)\n$/);
  });

  it("is no reason for a process to go on, unless it waits for a move", () => {
    const box = sandbox();
    const script = (body: string) => {
      const text = `
        import { openStore } from ${JSON.stringify(INDEX)};
        const store = await openStore(${JSON.stringify(`sqlite:${join(box.directory, ".agstate")}`)});
        const workflow = await store.workflow("trip-42");
        const moves = workflow.watch("canonical", { from: "start" });
        console.log((await moves.next()).value.seq);
        ${body}`;
      const { status, stdout } = spawnSync(
        process.execPath,
        ["--input-type=module", "--eval", text],
        { encoding: "utf8", timeout: 60_000 },
      );
      return { status, stdout };
    };
    // Neither ended nor closed: the process ends all the same, and in good order.
    expect(script("")).toEqual({ status: 0, stdout: "1\n" });
    const waits = `
      const branch = await workflow.canonical();
      setTimeout(() => branch.commit({ state: { n: 1 } }), 300).unref();
      console.log((await moves.next()).value.seq);`;
    expect(script(waits)).toEqual({ status: 0, stdout: "1\n2\n" });
  });
});
