import { type ChildProcess, spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import stringWidth from "string-width";
import { afterEach, describe, expect, it, onTestFinished } from "vitest";
import { openStore, type Workflow } from "../../src/index.js";
import { CliSandbox } from "../support/cli.js";

const MAIN = fileURLToPath(new URL("../../dist/bin/agstate.js", import.meta.url));

const running = new Set<ChildProcess>();
afterEach(() => {
  for (const child of running) child.kill("SIGKILL");
});

function start(box: CliSandbox, args: readonly string[]) {
  const child = spawn(process.execPath, [MAIN, "audit", ...args], { cwd: box.directory });
  running.add(child);
  let said = "";
  let errors = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  const ended = once(child, "close").then(([code, signal]) => {
    running.delete(child);
    return { code, signal, errors };
  });
  return { child, ended, lines: () => said.split("\n").slice(0, -1) };
}

function sandbox(): CliSandbox {
  const box = new CliSandbox();
  onTestFinished(() => box.remove());
  box.ok(["init"]);
  box.ok(["workflow", "create", "trip-42"]);
  return box;
}

/** The same workflow, by the library. */
async function opened(box: CliSandbox): Promise<Workflow> {
  const store = await openStore(`sqlite:${join(box.directory, ".agstate")}`, {
    governance: { rules: [{ tool: "rm*", decision: "deny" }], default: "allow" },
  });
  onTestFinished(() => store.close());
  return store.workflow("trip-42");
}

interface Line {
  readonly ref: string;
  readonly seq: number;
  readonly kind: string;
  readonly cursor?: string;
}

/** Every line of a file, which must be whole. */
function linesOf(file: string): Line[] {
  const text = readFileSync(file, "utf8");
  expect(text.endsWith("\n")).toBe(true);
  return text
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line));
}

function keysOf(lines: readonly Line[]): string[] {
  return lines.map(({ ref, seq }) => `${ref} ${seq}`);
}

describe("agstate audit", () => {
  it("tells what happened in lines of 80 columns, with nothing in them that acts on a terminal", async () => {
    const box = sandbox();
    const workflow = await opened(box);
    const branch = await workflow.branch({ agent: "booker", branch: "try-1" });
    await branch.step({ name: "search_flights", action: "write" }, () => 1);
    const evil = "rm \u001b[2Jx".repeat(10);
    await branch.step({ name: evil, action: "write" }, () => 1).catch(() => undefined);
    await branch.step({ name: evil, action: "write" }, () => 1).catch(() => undefined);
    await workflow.branch({ agent: "a".repeat(100), branch: "飛行機".repeat(12) });
    const text = box.ok(["audit"]);
    const lines = text.split("\n").slice(0, -1);
    expect(lines[0]).toMatch(/^\d{4}-\d\d-\d\d$/);
    expect(lines[1]).toMatch(
      /^\d\d:\d\d:\d\dZ {2}workflow {3}audit\/workflow {2}agstate {2}workflow: created$/,
    );
    const step = lines.filter((line) => line.includes("  step  "));
    expect(step.map((line) => line.split("  ").at(-1)?.trim())).toEqual([
      "1 search_flights started",
      "1 search_flights completed",
    ]);
    const refused = lines.filter((line) => line.includes("refused"));
    expect(refused.map((line) => line.split(" ")[2])).toEqual(["refused", "refused"]);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what must not be there
    expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
    for (const line of lines) expect(stringWidth(line), line).toBeLessThanOrEqual(80);
    const coloured = box.ok(["audit"], { env: { FORCE_COLOR: "1" } });
    expect(coloured).toContain("\u001b[1m\u001b[31mrefused");
    // biome-ignore lint/suspicious/noControlCharactersInRegex: colours are made of them
    expect(coloured.replaceAll(/\u001b\[\d+m/g, "")).toBe(text);
    const none = box.ok(["audit", "tags/*"]);
    expect(none).toBe("");
  });

  it("answers a JSON value a line, and goes on from the last cursor", async () => {
    const box = sandbox();
    const workflow = await opened(box);
    for (let n = 0; n < 30; n++) await workflow.tag(`t${n}`, "canonical");
    const first = box.json<Line>(["audit", "-n", "20"]);
    expect(first).toHaveLength(20);
    expect(first.at(-1)?.cursor).toMatch(/^1\./);
    const rest = box.json<Line>(["audit", "--since", first.at(-1)?.cursor as string]);
    expect(new Set(keysOf([...first, ...rest])).size).toBe(32);
    // The cursor is on lines that can bear it: together they are no longer than the rest.
    const text = box.ok(["audit", "--json"]);
    const cursors = text.match(/"cursor":"[^"]*"/g)!.join("").length;
    expect(cursors).toBeLessThan(text.length / 2 + 1000);
    await workflow.tag("new", "canonical");
    const news = box.json<Line>(["audit", "--since", rest.at(-1)?.cursor as string]);
    expect(keysOf(news)).toEqual(["refs/tags/new 1"]);
    const wrong = box.run(["audit", "--since", "yesterday"]);
    expect(wrong).toMatchObject({ status: 2, stdout: "" });
    expect(wrong.stderr).toMatch(/^agstate: that is no cursor .*\(INVALID_ARGUMENT\)\n$/);
  });

  it("follows what other processes do, until it is interrupted", async () => {
    const box = sandbox();
    const audit = start(box, ["--follow", "--json"]);
    while (audit.lines().length < 2) await sleep(20);
    box.ok(["branch", "booker/try-1"]);
    box.ok(["hold", "add", "canonical", "--reason", "r", "--name", "h"]);
    while (audit.lines().length < 4) await sleep(20);
    const lines = audit.lines().map((line) => JSON.parse(line) as Line);
    expect(lines.map(({ kind }) => kind)).toEqual(["workflow", "branch", "branch", "hold"]);
    expect(lines.at(-1)?.cursor).toMatch(/^1\./);
    audit.child.kill("SIGINT");
    expect(await audit.ended).toEqual({ code: 0, signal: null, errors: "" });
  });

  it("writes a file that has each event once, however often it is killed, and torn", async () => {
    const box = sandbox();
    const workflow = await opened(box);
    const write = async (count: number) => {
      const branches = await Promise.all(
        [0, 1, 2, 3].map((n) => workflow.branch({ agent: "a", branch: `b${n}` })),
      );
      for (let n = 0; n < count; n++) {
        await branches[n % 4]!.commit({
          state: { n },
          allowEmpty: true,
          message: "é".repeat(n % 50),
        });
        if (n % 25 === 0) await workflow.tag(`t${Date.now()}-${n}`, "canonical");
      }
    };
    await write(1500);
    const file = join(box.directory, "events.jsonl");
    const sizes: number[] = [];
    for (let round = 0; round < 8; round++) {
      const size = () => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
      const began = size();
      const audit = start(box, ["--to", file]);
      while (running.has(audit.child) && size() <= began) await sleep(1);
      await sleep(Math.random() * 5);
      audit.child.kill("SIGKILL");
      await audit.ended;
      sizes.push(size());
      // What a lost power may leave of the last lines.
      if (size() > 0) truncateSync(file, size() - Math.floor(Math.random() * 600));
      if (round % 2 === 0) await write(40);
    }
    // It went on in between, and was not through with the first.
    expect(sizes[0]).toBeLessThan(sizes.at(-1)!);
    box.ok(["audit", "--to", file]);
    const whole = box.json<Line>(["audit"]);
    const lines = linesOf(file);
    expect(keysOf(lines).sort()).toEqual(keysOf(whole).sort());
    expect(statSync(file).mode & 0o077).toBe(0);
    // With nothing new, nothing is written.
    box.ok(["audit", "--to", file]);
    expect(linesOf(file)).toHaveLength(lines.length);
  });

  it("goes on after a kill while it follows, too", async () => {
    const box = sandbox();
    const workflow = await opened(box);
    const file = join(box.directory, "events.jsonl");
    for (let round = 0; round < 3; round++) {
      const audit = start(box, ["--follow", "--to", file]);
      for (let n = 0; n < 20; n++) {
        await workflow.tag(`t${round}-${n}`, "canonical");
        await sleep(15);
      }
      if (round === 0)
        while (!(statSync(file, { throwIfNoEntry: false })?.size ?? 0)) await sleep(10);
      audit.child.kill("SIGKILL");
      await audit.ended;
    }
    box.ok(["audit", "--to", file]);
    expect(keysOf(linesOf(file)).sort()).toEqual(keysOf(box.json<Line>(["audit"])).sort());
  });

  it("leaves a file alone that it did not write", () => {
    const box = sandbox();
    for (const text of [
      "hello\n",
      '{"a":1}\n',
      '{"ref":"refs/x","seq":1,"cursor":"1.000000000000.-"}\n',
    ]) {
      box.write("notes.txt", text);
      const result = box.run(["audit", "--to", "notes.txt"]);
      expect(result.status, text).toBe(2);
      expect(readFileSync(join(box.directory, "notes.txt"), "utf8")).toBe(text);
    }
    expect(box.run(["audit", "--to", "no/such/folder"]).status).toBe(2);
  });
});

describe("agstate audit checkpoint and verify", () => {
  it("sign, verify, refuse, and tell what was put back", () => {
    const box = sandbox();
    // As openssl writes them.
    const { privateKey, publicKey } = generateKeyPairSync("ed25519");
    box.write("private.pem", `${privateKey.export({ type: "pkcs8", format: "pem" })}`);
    box.write("public.pem", `${publicKey.export({ type: "spki", format: "pem" })}`);
    box.ok(["tag", "t", "canonical"]);
    const signing = ["audit", "checkpoint", "--key", "private.pem"];
    expect(box.ok([...signing, "--out", "one.json"])).toBe("Signed where 3 logs stand: one.json\n");
    expect(box.run([...signing, "--out", "one.json"]).status).toBe(2);
    const text = box.ok(signing);
    expect(JSON.parse(text).statement.workflow).toBe("trip-42");
    box.ok(["tag", "-d", "t"]);
    const verifying = ["audit", "verify", "--public-key", "public.pem", "--checkpoint"];
    expect(box.ok([...verifying, "one.json"])).toMatch(
      /^trip-42: checked 3 refs, 4 log entries, 2 commits; held against 3 refs signed \S+Z\nNo problems\.\n$/,
    );
    expect(box.ok(["audit", "verify"])).toMatch(/No problems\.\nOnly a signed checkpoint shows/);
    expect(box.run(["audit", "verify", "--checkpoint", "one.json"]).status).toBe(2);
    box.write(
      "two.json",
      readFileSync(join(box.directory, "one.json"), "utf8").replace('"seq":1', '"seq":2'),
    );
    const refused = box.run([...verifying, "two.json"]);
    expect(refused).toMatchObject({ status: 6, stdout: "" });
    expect(refused.stderr).toMatch(/changed after it was signed \(CHECKPOINT_REFUSED\)\n$/);
    // A checkpoint of what is not there any more.
    box.ok(["tag", "gone", "canonical"]);
    writeFileSync(join(box.directory, "late.json"), box.ok(signing));
    box.shell(`cat > undo.mjs <<'END'
import Database from ${JSON.stringify(fileURLToPath(import.meta.resolve("better-sqlite3")))};
const db = new Database(".agstate/store.db");
db.exec("DELETE FROM reflog WHERE ref = (SELECT ref FROM refs WHERE name = 'refs/tags/gone'); DELETE FROM refs WHERE name = 'refs/tags/gone'");
END
${process.execPath} undo.mjs`);
    const found = box.run([...verifying, "late.json"]);
    expect(found.status).toBe(6);
    expect(found.stdout).toMatch(/^vanished refs\/tags\/gone: .*\n.*\n1 problem\.\n$/);
    expect(box.run(["audit", "verify", "--json"]).stdout).toMatch(/"problems":\[\],"notices":\[\]/);
  });
});
