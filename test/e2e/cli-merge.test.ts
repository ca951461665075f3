import { writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import stringWidth from "string-width";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { longGaps } from "../../src/cli/render/long-gaps.js";
import { valueChanges } from "../../src/cli/render/value-changes.js";
import type { JsonValue } from "../../src/core/json.js";
import { type Change, diffLinks } from "../../src/merge/diff.js";
import { normalize } from "../../src/objects/normalize.js";
import { CliSandbox } from "../support/cli.js";
import { gitLines, tryGit } from "../support/git.js";
import { ObjectStore } from "../support/object-store.js";

const ESC = "\u001b";
const SHORT_ID = "[0-9a-f]{10}";

interface ConflictJson {
  readonly part: string;
  readonly path: string;
  readonly kind: string;
  readonly base: { readonly exists: boolean; readonly value?: unknown };
  readonly ours: { readonly branch: string; readonly writer: { readonly author: string } };
  readonly theirs: { readonly branch: string; readonly writer: { readonly author: string } };
}

interface StoredJson {
  readonly name: string;
  readonly resolved: readonly { readonly path: string; readonly reopened: boolean }[];
  readonly conflicts: readonly ConflictJson[];
}

/** Sandboxes of this file, each removed when it ends. */
const boxes: CliSandbox[] = [];
afterAll(() => {
  for (const box of boxes) box.remove();
});

/** A store whose canonical holds a state, and a branch for each further state. */
function story(base: unknown, branches: Readonly<Record<string, unknown>> = {}): CliSandbox {
  const box = new CliSandbox();
  boxes.push(box);
  box.ok(["init"]);
  box.ok(["workflow", "create", "trip"]);
  commit(box, "canonical", base, "Start");
  for (const name of Object.keys(branches)) box.ok(["branch", name]);
  for (const [name, state] of Object.entries(branches)) commit(box, name, state, `From ${name}`);
  return box;
}

function commit(box: CliSandbox, branch: string, state: unknown, message: string): void {
  box.ok(["commit", "-", "-b", branch, "-m", message], { input: JSON.stringify(state) });
}

function stateOf(box: CliSandbox, revision = "canonical"): unknown {
  return box.json(["cat", revision])[0];
}

/** Everything that is there: refs, and how many commits, objects and bytes. */
function everything(box: CliSandbox): unknown {
  return [box.json(["workflow", "show"]), box.ok(["log", "--oneline", "--all"])];
}

/** The lines of a text, of which none is wider than a terminal of 80 columns. */
function within80(text: string): string[] {
  const lines = text.trimEnd().split("\n");
  for (const line of lines) expect(stringWidth(line), line).toBeLessThanOrEqual(80);
  return lines;
}

const BASE = { budget: 500, city: "Oslo", log: ["start"], seats: 2 };
const FLIGHTS = { ...BASE, budget: 450, log: ["start", "flight"], seats: 3 };
const HOTELS = { ...BASE, budget: 700, log: ["start", "hotel"], city: "Bergen" };
const BOTH = { "flights/try-1": FLIGHTS, "hotels/try-1": HOTELS };

describe("agstate merge", () => {
  it("goes from branches to conflicts to resolutions to one merge commit", () => {
    const box = story(BASE, BOTH);
    const before = box.ok(["log", "--oneline"]);

    const merge = box.run(["merge", "flights/try-1", "hotels/try-1"]);
    expect(merge).toMatchObject({ status: 4, stderr: "" });
    const [, name] = /stored as (merge-[0-9a-f]{8})/.exec(merge.stdout) as unknown as string[];
    expect(within80(merge.stdout).slice(0, 9)).toEqual([
      "CONFLICT (edit/edit) /budget",
      "  changed on both sides",
      "  base    500",
      "  ours    450",
      expect.stringMatching(
        `^          agents/flights/try-1 ${SHORT_ID} \\(.* ago|just now\\) From`,
      ),
      "  theirs  700",
      expect.stringMatching(`^          agents/hotels/try-1 ${SHORT_ID} \\(.*\\) From`),
      "",
      "1 path conflicts; canonical has not moved.",
    ]);
    expect(box.ok(["log", "--oneline"])).toBe(before);
    expect(box.ok(["status"])).toMatch(
      new RegExp(`1 merge waits .*\\n  ${name}  1 open  agents/flights/try-1 and 1 more`),
    );
    expect(box.ok(["merge", "--list"])).toMatch(new RegExp(`^${name}  1 open  `));

    // Going on before everything is resolved shows what is open, and moves nothing.
    expect(box.run(["merge", "--continue"])).toMatchObject({ status: 4 });
    expect(box.ok(["log", "--oneline"])).toBe(before);

    const resolved = box.ok(["resolve", "/budget", "--theirs", "hotels/try-1", "--author", "ann"]);
    expect(resolved).toBe(
      "Resolved /budget: theirs of agents/hotels/try-1.\n" +
        "Nothing is open any more; finish with agstate merge --continue\n",
    );
    expect(box.ok(["conflicts"])).toContain("resolved /budget: theirs, by ann\n");
    expect(box.ok(["status"])).toContain("ready to continue");

    const done = within80(box.ok(["merge", "--continue", "-m", "Agree on the trip"]));
    expect(done).toEqual([
      expect.stringMatching(`^\\[canonical ${SHORT_ID}\\] Agree on the trip$`),
      " agents/flights/try-1  1 commit",
      " agents/hotels/try-1   1 commit",
      " /budget  ~1",
      " /city    ~1",
      " /log     +2",
      " /seats   ~1",
      "5 changes: 2 added, 0 removed, 3 changed",
    ]);
    expect(stateOf(box)).toEqual({
      budget: 700,
      city: "Bergen",
      log: ["start", "flight", "hotel"],
      seats: 3,
    });
    expect(box.ok(["status"])).not.toContain("waits");
    expect(box.ok(["merge", "--list"])).toContain("No merge waits");

    const shown = within80(box.ok(["show"])).join("\n");
    expect(shown).toMatch(/^Merge: {2}[0-9a-f]{10} [0-9a-f]{10} [0-9a-f]{10}$/m);
    expect(shown).toMatch(
      new RegExp(`^Merge into canonical\\n  source  agents/flights/try-1  ${SHORT_ID}  since`, "m"),
    );
    expect(shown).toMatch(
      /^ {2}resolved {2}\/budget {2}theirs of agents\/hotels\/try-1 {2}by ann$/m,
    );
    expect(box.ok(["log", "--graph", "--oneline"])).toMatch(/^\*-\. {3}[0-9a-f]{10} \(canonical\)/);
    expect(box.ok(["fsck"])).toContain("No problems.");
  });

  it("tells of fast-forwards, of merge commits and of having nothing to do", () => {
    const box = story(BASE, { "flights/try-1": FLIGHTS });
    expect(box.run(["merge", "flights/try-1", "--ff-only", "--no-ff"])).toMatchObject({
      status: 2,
    });
    const forward = within80(box.ok(["merge", "flights/try-1"]));
    expect(forward[0]).toMatch(`Fast-forward `);
    expect(forward[1]).toMatch(new RegExp(`^\\[canonical ${SHORT_ID}\\] From flights/try-1$`));
    expect(forward.at(-1)).toBe("3 changes: 1 added, 0 removed, 2 changed");
    expect(box.ok(["merge", "flights/try-1"])).toMatch(
      /^Already up to date: canonical stays at [0-9a-f]{10}\.\n agents\/flights\/try-1 {2}has nothing new\n$/,
    );
    commit(box, "flights/try-1", { ...FLIGHTS, seats: 4 }, "One more");
    const merged = box.json(["merge", "flights/try-1", "--no-ff", "--author", "ann"]);
    expect(merged).toMatchObject([
      {
        status: "merged",
        into: "canonical",
        attempts: 1,
        conflicts: [],
        stored: null,
        changes: { added: 0, removed: 0, changed: 1 },
        commit: { author: "ann", parents: [expect.any(String), expect.any(String)] },
        contributions: [{ branch: "agents/flights/try-1", status: "merged", commits: 1 }],
      },
    ]);
    commit(box, "canonical", { ...FLIGHTS, seats: 5 }, "Ours");
    commit(box, "flights/try-1", { ...FLIGHTS, seats: 4, x: 1 }, "Theirs");
    expect(box.run(["merge", "flights/try-1", "--ff-only"])).toMatchObject({
      status: 4,
      stderr: expect.stringContaining("(REF_CONFLICT)"),
    });
    // The other way round, with a policy for this merge alone.
    box.ok(["merge", "canonical", "--into", "flights/try-1", "--policy", "/seats=max"]);
    expect(stateOf(box, "flights/try-1")).toMatchObject({ seats: 5, x: 1 });
    const [record] = box.json<{ mergeRecord: unknown }>(["show", "flights/try-1"]);
    expect(record?.mergeRecord).toMatchObject({
      operation: "merge",
      into: "agents/flights/try-1",
      policies: { "/seats": "max" },
      callPolicies: { "/seats": "max" },
    });
    expect(box.ok(["show", "flights/try-1"])).toContain("  policy  /seats  max  for this call\n");
  });

  it("previews without writing anything", () => {
    const box = story(BASE, BOTH);
    const before = everything(box);
    const clean = box.run(["merge", "--preview", "hotels/try-1"]);
    expect(clean.status).toBe(0);
    expect(within80(clean.stdout)[0]).toMatch(
      new RegExp(
        `^Would fast-forward canonical at ${SHORT_ID} to ${SHORT_ID}\\. Nothing was written\\.$`,
      ),
    );
    expect(clean.stdout).toContain('  ~ /city\n      - "Oslo"\n      + "Bergen"\n');
    const conflict = box.run(["merge", "--preview", "flights/try-1", "hotels/try-1"]);
    expect(conflict.status).toBe(4);
    expect(within80(conflict.stdout)).toContain("CONFLICT (edit/edit) /budget");
    expect(conflict.stdout).toContain("Would conflict at 1 path with canonical");
    expect(conflict.stdout).not.toContain("stored");
    const json = box.run(["--json", "merge", "--preview", "flights/try-1", "hotels/try-1"]);
    expect(json.status).toBe(4);
    expect(JSON.parse(json.stdout)).toMatchObject({
      status: "conflict",
      into: "canonical",
      commit: null,
      conflicts: [{ path: "/budget", kind: "edit/edit" }],
      changes: expect.arrayContaining([expect.objectContaining({ path: "/city" })]),
    });
    expect(everything(box)).toEqual(before);
  });

  it("gives a stored merge up, and keeps several apart by name", () => {
    const box = story(BASE, BOTH);
    const states = box.ok(["log", "--oneline", "--all"]);
    box.run(["merge", "flights/try-1", "hotels/try-1"]);
    expect(box.ok(["merge", "--abort"])).toMatch(
      /^Gave up the merge merge-[0-9a-f]{8}; canonical is as it was\.\n$/,
    );
    expect(box.ok(["log", "--oneline", "--all"])).toBe(states);
    expect(box.run(["conflicts"])).toMatchObject({
      status: 3,
      stderr: expect.stringContaining("(MERGE_NOT_FOUND)"),
    });

    box.run(["merge", "flights/try-1", "hotels/try-1"]);
    const second = box.run(["merge", "hotels/try-1", "flights/try-1"]);
    const names = box.json<{ name: string }>(["merge", "--list"]).map((info) => info.name);
    expect(names).toHaveLength(2);
    const [, name = ""] = /stored as (merge-[0-9a-f]{8})/.exec(second.stdout) ?? [];
    // Where there are two, what is suggested names the one that it is about.
    expect(second.stdout).toContain(`agstate merge --continue ${name}`);
    expect(second.stdout).toContain(`--theirs --merge ${name}`);
    for (const args of [["conflicts"], ["merge", "--continue"], ["resolve", "/budget", "--ours"]]) {
      const result = box.run(args);
      expect(result).toMatchObject({ status: 2, stdout: "" });
      expect(result.stderr).toMatch(`there are 2 stored merges; name one of ${names.join(", ")}`);
    }
    box.ok(["resolve", "/budget", "--ours", "--merge", name]);
    box.ok(["merge", "--continue", name]);
    expect(stateOf(box)).toMatchObject({ budget: 700 });
    expect(box.json(["merge", "--list"]).map((info) => info.name)).toEqual(
      names.filter((other) => other !== name),
    );
  });

  it("opens a path again when the target moved under its resolution", () => {
    const box = story(BASE, BOTH);
    box.run(["merge", "flights/try-1", "hotels/try-1"]);
    box.ok(["resolve", "--theirs", "/budget"]);
    commit(box, "canonical", { ...BASE, budget: 1 }, "Meanwhile");
    const [stored] = box.json<StoredJson>(["conflicts"]);
    expect(stored?.resolved).toMatchObject([{ path: "/budget", reopened: true }]);
    expect(box.ok(["conflicts"])).toContain("open again (the values changed since) /budget");
    expect(box.run(["merge", "--continue"])).toMatchObject({ status: 4 });
    box.ok(["resolve", "/budget", "--value", "-650"]);
    box.ok(["merge", "--continue"]);
    expect(stateOf(box)).toMatchObject({ budget: -650, city: "Bergen", seats: 3 });
  });
});

describe("agstate resolve", () => {
  const base = { a: 1, b: 1, c: 1, d: { x: 1 }, e: [1, 2] };
  const one = { a: 2, b: 2, c: 2, d: { x: 2 }, e: [2, 2] };
  const two = { a: 3, b: 3, c: 3, e: [3, 2] };
  const three = { ...base, a: 4 };

  it("takes a side, a branch's value, a given value, a file, or nothing", () => {
    const box = story(base, { "x/one": one, "x/two": two, "x/three": three });
    const merge = box.run(["merge", "x/one", "x/two", "x/three"]);
    expect(merge.stdout).toMatch(/^CONFLICT \(edit\/delete\) \/d$/m);
    expect(merge.stdout).toMatch(/^ {2}theirs {2}\(removed\)$/m);
    // Of three values at one path, the base and ours are told of once.
    expect(merge.stdout.split("\n\n")[0]?.match(/^ {2}(base|ours|theirs) /gm)).toEqual([
      "  base ",
      "  ours ",
      "  theirs ",
      "  theirs ",
    ]);
    const several = box.run(["resolve", "/a", "--theirs"]);
    expect(several).toMatchObject({ status: 2, stdout: "" });
    expect(several.stderr).toContain("say whose value to take: agents/x/two, agents/x/three");
    box.ok(["resolve", "/a", "--theirs", "x/three"]);
    // The value of the first branch is ours for those that follow.
    box.ok(["resolve", "/b", "--theirs", "x/one"]);
    writeFileSync(join(box.directory, "c.json"), '{"from":"a file"}');
    box.ok(["resolve", "/c", "--file", "c.json"]);
    const [answer] = box.json(["resolve", "/d", "--delete"]);
    expect(answer).toMatchObject({ path: "/d", how: "delete", open: [{ path: "/e" }] });
    box.ok(["resolve", "/e", "--value", "[-1]"]);
    box.ok(["merge", "--continue"]);
    expect(stateOf(box)).toEqual({ a: 4, b: 2, c: { from: "a file" }, e: [-1] });
  });

  it("takes the last of several decisions", () => {
    const box = story({ a: 1 }, { "x/one": { a: 2 }, "x/two": { a: 3 } });
    box.run(["merge", "x/one", "x/two"]);
    box.ok(["resolve", "/a", "--ours"]);
    box.ok(["resolve", "/a", "--theirs"]);
    box.ok(["merge", "--continue"]);
    expect(stateOf(box)).toEqual({ a: 3 });
  });

  it("decides about the whole state, and about merge policies", () => {
    const box = story({ a: 1 }, { "x/one": [1], "x/two": "two" });
    box.ok(["policy", "set", "/a", "max", "--branch", "x/one"]);
    box.ok(["policy", "set", "/a", "min", "--branch", "x/two"]);
    const merge = box.run(["merge", "x/one", "x/two"]);
    expect(merge.stdout).toContain("CONFLICT (type) (the whole state)");
    expect(merge.stdout).toContain("CONFLICT (add/add) merge policy of /a");
    expect(merge.stdout).toContain("agstate resolve '' --theirs");
    box.ok(["resolve", "", "--theirs"]);
    expect(box.run(["merge", "--continue"]).stdout).toContain(
      "agstate resolve /a --theirs --part policy",
    );
    box.ok(["resolve", "/a", "--ours", "--part", "policy"]);
    box.ok(["merge", "--continue"]);
    expect(stateOf(box)).toBe("two");
    expect(box.ok(["policy"])).toBe("/a  max\n");
  });

  it("names an element of a list that merges by id", () => {
    const box = story(
      { items: [{ id: "a'7", n: 1 }] },
      { "x/one": { items: [{ id: "a'7", n: 2 }] }, "x/two": { items: [{ id: "a'7", n: 3 }] } },
    );
    box.ok(["policy", "set", "/items", "by-id:id"]);
    const merge = box.run(["merge", "x/one", "x/two"]);
    const [, command = ""] = /^ {2}(agstate resolve .*?)(?: {2}|$)/m.exec(merge.stdout) ?? [];
    expect(command).not.toBe("");
    // What is suggested can be pasted into a shell as it is.
    const pasted = box.shell(command.replace(/^agstate/, "$AGSTATE"));
    expect(pasted).toMatchObject({ status: 0, stderr: "" });
    box.ok(["merge", "--continue"]);
    expect(stateOf(box)).toEqual({ items: [{ id: "a'7", n: 3 }] });
  });
});

describe("conflicts on the screen", () => {
  it("show what each side changed in a long list, text or object, not all of it", () => {
    const messages = Array.from({ length: 200 }, (_, i) => ({ role: "user", content: `m${i}` }));
    const notes = Array.from({ length: 300 }, (_, i) => `line ${i}`).join("\n");
    const long = "x".repeat(5000);
    const edited = (tag: string, at: number) => ({
      messages: [
        { role: "system", content: tag },
        ...messages.with(at, { role: "user", content: tag }),
      ],
      notes: notes.replace("line 7\n", `${tag}\n`),
      text: `${long}${tag}${long}`,
    });
    const box = story(
      { messages, notes, text: `${long}${long}` },
      { "x/one": edited("one", 3), "x/two": edited("two", 190) },
    );
    const { stdout } = box.run(["merge", "x/one", "x/two"]);
    const lines = within80(stdout);
    expect(lines.length).toBeLessThan(60);
    expect(lines).toEqual(
      expect.arrayContaining([
        "CONFLICT (list) /messages",
        "  base    a list of 200 elements",
        "  theirs  a list of 201 elements",
        '          + /0 {"content":"two","role":"system"}',
        "          ~ /191/content",
        '            - "m190"',
        '            + "two"',
        "  base    a text of 300 lines, 2.6 kB",
        "          - line 7",
        "          + one",
      ]),
    );
    // Where two long lines begin to differ is in sight.
    expect(stdout).toMatch(/\+ \.\.\.x{16}two/);
  });

  it("escape what could act on a terminal, and stay within 80 columns", () => {
    const evil = `k${ESC}[2J\u202e\n\u0007`;
    const name = "x\u202egnp";
    const wide = "漢字".repeat(100);
    const state = (tag: string) => ({
      [evil]: `${tag}${ESC}]0;title\u0007\u009b31m\u202e`,
      [wide]: `${wide}${tag}${wide}`,
      list: [`${tag}\u009b31m`, wide + tag],
      deep: { [`${"k".repeat(300)}`]: tag, more: wide },
    });
    const box = story({}, {});
    commit(box, "canonical", state("base"), `red ${ESC}[31m\r\nsecond`);
    box.ok(["branch", `${name}/one`]);
    box.ok(["branch", "x/two"]);
    commit(box, `${name}/one`, state("one"), `red ${ESC}[31m${wide}`);
    commit(box, "x/two", state("two"), `${wide}\u0007`);
    box.ok(["policy", "set", `/${evil.replaceAll("~", "~0")}x`, "append"]);
    const merge = ["merge", `${name}/one`, "x/two"];
    const outputs = [
      box.run([...merge, "--preview"]),
      box.run(merge),
      box.run(["conflicts"]),
      box.run(["status"]),
      box.run(["merge", "--list"]),
      box.run(["policy"]),
      box.run(["policy", "unset", `/${evil}`]),
      box.run(["resolve", `/${evil}`, "--value", `"${name}"`]),
      box.run(["resolve", `/${evil}nothing`, "--ours"]),
      box.run(["resolve", `/${wide}`, "--theirs"]),
      box.run(["conflicts", `x${ESC}[31m`]),
      box.run(["merge", `x${ESC}[31m`]),
      box.run(["merge", "x/two", "--policy", `${ESC}=ours`]),
      box.run(["show", `merges/${box.json<StoredJson>(["merge", "--list"])[0]?.name}`]),
    ];
    for (const { stdout, stderr } of outputs) {
      expect(stdout + stderr).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}]/u);
    }
    const shown = outputs[2]?.stdout ?? "";
    // A path is to be copied, so that it alone may be longer than a line.
    for (const line of shown.split("\n")) {
      if (!line.startsWith("CONFLICT")) expect(stringWidth(line), line).toBeLessThanOrEqual(80);
    }
    const { conflicts = [] } = box.json<StoredJson>(["conflicts"])[0] ?? {};
    expect(conflicts.map(({ path }) => path)).toContain(`/deep/${"k".repeat(300)}`);
    expect(conflicts[0]?.ours.branch).toBe(`agents/${name}/one`);
  });

  it("are coloured only where colour is wanted", () => {
    const box = story(BASE, BOTH);
    const args = ["merge", "--preview", "flights/try-1", "hotels/try-1"];
    const plain = box.run(args).stdout;
    expect(plain).not.toContain(ESC);
    const coloured = box.run(args, { env: { FORCE_COLOR: "1" } }).stdout;
    expect(coloured).toContain(`${ESC}[`);
    const bare = coloured.replaceAll(new RegExp(`${ESC}\\[[0-9;]*m`, "g"), "");
    const ages = /just now|\d+ seconds? ago/g;
    expect(bare.replaceAll(ages, "").replaceAll(/From.*/g, "")).toBe(
      plain.replaceAll(ages, "").replaceAll(/From.*/g, ""),
    );
    for (const off of [{ NO_COLOR: "1", FORCE_COLOR: "1" }, { FORCE_COLOR: "0" }]) {
      expect(box.run(args, { env: off }).stdout).not.toContain(ESC);
    }
    expect(box.run([...args, "--json"], { env: { FORCE_COLOR: "1" } }).stdout).not.toContain(ESC);
  });

  it("end quietly when the reader goes away", () => {
    const base = Object.fromEntries(Array.from({ length: 400 }, (_, i) => [`k${i}`, 0]));
    const all = (n: number) => Object.fromEntries(Object.keys(base).map((key) => [key, n]));
    const box = story(base, { "x/one": all(1), "x/two": all(2) });
    const merge = box.run(["merge", "x/one", "x/two"]);
    expect(merge.stdout).toContain("... and conflicts at 390 more paths");
    expect(box.ok(["conflicts"]).match(/^CONFLICT/gm)).toHaveLength(400);
    for (const more of ["", "--json"]) {
      const head = box.shell(`$AGSTATE conflicts ${more} | head -c 10; echo " \${PIPESTATUS[0]}"`);
      expect(head).toMatchObject({ stderr: "" });
      expect(head.stdout).toMatch(/ 0\n$/);
    }
  });
});

describe("conflicts as JSON", () => {
  it("say who wrote what, one value a command", () => {
    const box = story(BASE, BOTH);
    const merge = box.run(["--json", "merge", "flights/try-1", "hotels/try-1"]);
    expect(merge).toMatchObject({ status: 4, stderr: "" });
    const answer = JSON.parse(merge.stdout) as { stored: string; conflicts: ConflictJson[] };
    const conflict = {
      part: "state",
      path: "/budget",
      kind: "edit/edit",
      base: { exists: true, value: 500 },
      ours: {
        exists: true,
        value: 450,
        branch: "agents/flights/try-1",
        writer: { author: "flights", message: "From flights/try-1" },
      },
      theirs: {
        exists: true,
        value: 700,
        branch: "agents/hotels/try-1",
        writer: { author: "hotels", date: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/) },
      },
    };
    expect(answer).toMatchObject({ status: "conflict", commit: null, conflicts: [conflict] });
    const [stored] = box.json(["conflicts"]);
    expect(stored).toMatchObject({
      name: answer.stored,
      operation: "merge",
      into: "canonical",
      author: "supervisor",
      sources: [{ branch: "agents/flights/try-1" }, { branch: "agents/hotels/try-1" }],
      resolved: [],
      conflicts: [conflict],
    });
    expect(box.json(["merge", "--list"])).toMatchObject([
      { name: answer.stored, open: [{ part: "state", path: "/budget" }], problem: null },
    ]);
    expect(box.json(["status"])).toMatchObject([{ merges: [{ name: answer.stored }] }]);
    expect(box.json(["merge", "--abort"])).toEqual([{ aborted: answer.stored, into: "canonical" }]);
    expect(box.json(["status"])).toMatchObject([{ merges: [] }]);
  });
});

describe("agstate policy", () => {
  it("lists, sets and unsets, and acts from the next merge on", () => {
    const box = story(
      { log: [1], n: 1 },
      { "x/one": { log: [2, 1], n: 2 }, "x/two": { log: [3], n: 3 } },
    );
    expect(box.ok(["policy"])).toContain("canonical has no merge policies");
    const set = box.ok(["policy", "set", "/n", "sum", "--author", "ann"]);
    expect(set).toMatch(/^\[canonical [0-9a-f]{10}\] Set the merge policy of "\/n" to sum\n$/);
    box.ok(["policy", "set", "/log", "union", "-m", "Logs are sets"]);
    expect(box.ok(["log", "--oneline"])).toMatch(/^[0-9a-f]{10} \(canonical\) Logs are sets$/m);
    expect(box.ok(["policy"])).toBe("/log  union\n/n    sum\n");
    const before = box.ok(["log"]);
    expect(box.ok(["policy", "set", "/n", "sum"])).toMatch(/^Nothing changed; canonical stays at/);
    expect(box.ok(["log"])).toBe(before);
    box.ok(["merge", "x/one", "x/two"]);
    expect(stateOf(box)).toEqual({ log: [2, 3], n: 4 });
    expect(box.json(["policy", "unset", "/log"])).toMatchObject([
      { branch: "canonical", written: true, policies: { "/n": "sum" } },
    ]);
    expect(box.json(["policy", "list", "--branch", "x/one"])).toEqual([
      { branch: "agents/x/one", policies: {} },
    ]);
    expect(box.json(["policy", "--branch", "canonical"])).toEqual([
      { branch: "canonical", policies: { "/n": "sum" } },
    ]);
  });

  it("reads PATH=STRATEGY with = on either side", () => {
    const list = (n: number) => [{ "k=": "a", n }];
    const box = story(
      { "a=b": list(1) },
      { "x/one": { "a=b": list(2) }, "x/two": { "a=b": list(3) } },
    );
    const args = ["--policy", "/a=b=by-id:k=", "--policy", "/a=b/*/n=max"];
    const [merged] = box.json(["merge", "x/one", "x/two", ...args]);
    expect(merged).toMatchObject({ status: "merged" });
    expect(stateOf(box)).toEqual({ "a=b": list(3) });
  });
});

describe("agstate cherry-pick, revert and reset", () => {
  it("take one change over, undo it, and go back", () => {
    const box = story(BASE, BOTH);
    commit(box, "hotels/try-1", { ...HOTELS, spa: true }, "Add a spa");
    const picked = within80(box.ok(["cherry-pick", "hotels/try-1"]));
    expect(picked).toEqual([
      expect.stringMatching(`^\\[canonical ${SHORT_ID}\\] Add a spa$`),
      " /spa  +1",
      "1 change: 1 added, 0 removed, 0 changed",
    ]);
    expect(stateOf(box)).toEqual({ ...BASE, spa: true });
    expect(box.ok(["cherry-pick", "hotels/try-1"])).toMatch(
      /^Nothing to do: canonical has that change already; it stays at [0-9a-f]{10}\.\n$/,
    );
    expect(box.ok(["show"])).toContain("Cherry-pick onto canonical\n");
    box.ok(["cherry-pick", "hotels/try-1", "--onto", "flights/try-1", "--author", "ann"]);
    expect(stateOf(box, "flights/try-1")).toEqual({ ...FLIGHTS, spa: true });

    const at = box.json<{ id: string }>(["log", "-n", "1"])[0]?.id as string;
    const [reverted] = box.json(["revert", "canonical"]);
    expect(reverted).toMatchObject({
      status: "applied",
      onto: "canonical",
      changes: { added: 0, removed: 1, changed: 0 },
      commit: { parents: [at] },
    });
    expect(stateOf(box)).toEqual(BASE);

    const reset = box.ok(["reset", "canonical", "canonical~1", "--author", "ann"]);
    expect(reset).toMatch(
      /^canonical is now at [0-9a-f]{10} Add a spa\nIt leaves 1 commit behind; agstate reset canonical ([0-9a-f]{10}) goes back\.\n$/,
    );
    expect(stateOf(box)).toEqual({ ...BASE, spa: true });
    expect(box.ok(["reflog"])).toMatch(/ann +reset: moving to "canonical~1"\n/);
    expect(
      box.run(["reset", "canonical", "canonical~1", "--expected", "canonical~1"]),
    ).toMatchObject({ status: 4, stderr: expect.stringContaining("(REF_CONFLICT)") });
    const [back] = box.json(["reset", "canonical", "canonical@{1}", "--expected", at]);
    expect(back).toMatchObject({ shortName: "canonical", old: at });
    expect(stateOf(box)).toEqual(BASE);
  });

  it("store their conflicts as a merge does", () => {
    const box = story(BASE, BOTH);
    box.ok(["merge", "flights/try-1"]);
    const pick = box.run(["cherry-pick", "hotels/try-1"]);
    expect(pick).toMatchObject({ status: 4, stderr: "" });
    expect(pick.stdout).toContain("CONFLICT (edit/edit) /budget");
    expect(pick.stdout).toMatch(/The cherry-pick is stored as merge-/);
    expect(box.ok(["merge", "--list"])).toContain("cherry-pick agents/hotels/try-1");
    box.ok(["resolve", "/budget", "--theirs"]);
    expect(box.ok(["merge", "--continue"])).toMatch(
      /^\[canonical [0-9a-f]{10}\] From hotels\/try-1\n \//,
    );
    expect(stateOf(box)).toMatchObject({ budget: 700, city: "Bergen" });
    const [commit] = box.json<{ parents: string[] }>(["show"]);
    expect(commit?.parents).toHaveLength(1);

    box.ok(["merge", "flights/try-1", "hotels/try-1", "--policy", "=ours"]);
    const mainline = box.run(["revert", "canonical"]);
    expect(mainline).toMatchObject({ status: 2, stdout: "" });
    expect(mainline.stderr).toContain("mainline");
    expect(box.ok(["revert", "canonical", "--mainline", "1"])).toContain("Nothing to do");
  });
});

describe("agstate merge-base", () => {
  it("prints what git merge-base prints on the exported repository", () => {
    const box = story({}, { "x/one": { a: 1 }, "x/two": { b: 1 } });
    // Two merges crosswise: both sides' first commits are best common ancestors.
    box.ok(["branch", "x/first", "x/one"]);
    box.ok(["branch", "x/second", "x/two"]);
    box.ok(["merge", "x/second", "--into", "x/one"]);
    box.ok(["merge", "x/first", "--into", "x/two"]);
    commit(box, "x/one", { c: 1 }, "On");
    commit(box, "x/two", { d: 1 }, "And on");
    box.ok(["workflow", "create", "other"]);
    const env = { AGSTATE_WORKFLOW: "trip" };
    box.ok(["export", "--git", "trip.git"], { env });
    const repository = join(box.directory, "trip.git");
    const names: Record<string, string> = {
      canonical: "canonical",
      "x/one": "agents/x/one",
      "x/two": "agents/x/two",
      "x/first": "agents/x/first",
    };
    const pairs = [
      ["x/one", "x/two"],
      ["x/two", "x/one"],
      ["canonical", "x/one"],
      ["x/first", "x/one", "x/two"],
      ["x/one", "x/one"],
    ];
    let most = 0;
    for (const pair of pairs) {
      const asked = pair.map((name) => names[name] as string);
      const ours = box
        .ok(["merge-base", "--all", ...pair], { env })
        .trimEnd()
        .split("\n");
      const theirs = gitLines(repository, ["merge-base", "--all", ...asked]);
      expect(ours.toSorted()).toEqual(theirs.toSorted());
      most = Math.max(most, ours.length);
      const [best] = box.json<{ bases: string[] }>(["-w", "trip", "merge-base", ...pair]);
      expect(best?.bases).toHaveLength(1);
      expect(theirs).toContain(best?.bases[0]);
    }
    expect(most).toBe(2);
    for (const pair of [
      ["x/first", "x/one"],
      ["x/one", "x/first"],
      ["x/two", "canonical"],
      ["canonical", "canonical"],
    ]) {
      const asked = pair.map((name) => names[name] as string);
      expect(box.run(["merge-base", "--is-ancestor", ...pair], { env })).toMatchObject({
        status: tryGit(repository, ["merge-base", "--is-ancestor", ...asked]).status,
        stdout: "",
        stderr: "",
      });
    }
  });

  it("ends with 1 and prints nothing when there is none", () => {
    const box = story({ a: 1 });
    box.ok(["branch", "x/one", "canonical"]);
    // The workflow's declarations stand apart from its state's history.
    const apart = "refs/audit/workflow";
    if (box.run(["merge-base", "canonical", apart]).status === 0) {
      throw new Error("the two are expected to be unrelated");
    }
    expect(box.run(["merge-base", "canonical", apart])).toEqual({
      status: 1,
      stdout: "",
      stderr: "",
    });
    expect(box.run(["--json", "merge-base", "--all", "canonical", apart])).toMatchObject({
      status: 1,
      stdout: '{"bases":[]}\n',
    });
  });
});

describe("bad input", () => {
  let box: CliSandbox;
  let before: unknown;
  beforeAll(() => {
    box = story(BASE, BOTH);
    box.run(["merge", "flights/try-1", "hotels/try-1"]);
    before = everything(box);
  });

  const cases: [string, string[], number, RegExp][] = [
    ["no branch", ["merge"], 2, /name at least one branch.*INVALID_ARGUMENT/],
    ["an unknown branch", ["merge", "booker/nowhere"], 3, /REVISION_NOT_FOUND/],
    ["an unknown target", ["merge", "flights/try-1", "--into", "x/y"], 3, /x\/y.*REF_NOT_FOUND/],
    ["a target that is no branch", ["merge", "flights/try-1", "--into", "x"], 2, /INVALID_NAME/],
    ["an unknown strategy", ["merge", "flights/try-1", "--policy", "/a=best"], 2, /INVALID_POLICY/],
    [
      "a policy without a strategy",
      ["merge", "flights/try-1", "--policy", "/a"],
      2,
      /PATH=STRATEGY/,
    ],
    ["a policy path that is none", ["merge", "x/y", "--policy", "a=ours"], 2, /INVALID_PATH/],
    ["a policy for __proto__", ["merge", "x/y", "--policy", "__proto__=ours"], 2, /INVALID_PATH/],
    [
      "a resolver that is not there",
      ["merge", "flights/try-1", "hotels/try-1", "--policy", "/a=custom:x"],
      3,
      /RESOLVER_NOT_FOUND/,
    ],
    ["branches to continue with", ["merge", "flights/try-1", "--continue"], 2, /take no branches/],
    ["two ends at once", ["merge", "--continue", "--abort"], 2, /cannot be used with/],
    ["an unknown merge to continue", ["merge", "--continue", "merge-x"], 3, /MERGE_NOT_FOUND/],
    ["an unknown merge to abort", ["merge", "--abort", "merge-x"], 3, /MERGE_NOT_FOUND/],
    ["a merge name that is none", ["conflicts", "a/b"], 2, /INVALID_NAME/],
    [
      "a path without a conflict",
      ["resolve", "/city", "--ours"],
      3,
      /nothing conflicts.*PATH_NOT_FOUND/,
    ],
    ["a path that is no pointer", ["resolve", "budget", "--ours"], 2, /INVALID_PATH/],
    ["no path", ["resolve", "--theirs"], 2, /name the path/],
    ["no resolution", ["resolve", "/budget"], 2, /one of --ours/],
    ["two resolutions", ["resolve", "/budget", "--ours", "--delete"], 2, /one of --ours/],
    [
      "a value that is no JSON",
      ["resolve", "/budget", "--value", "{nope"],
      2,
      /line 1.*INVALID_VALUE/,
    ],
    [
      "a value that would be rounded",
      ["resolve", "/budget", "--value", "235191684988928001"],
      2,
      /235191684988928001.*INVALID_VALUE/,
    ],
    [
      "a file that is not there",
      ["resolve", "/budget", "--file", "no.json"],
      2,
      /INVALID_ARGUMENT/,
    ],
    [
      "a branch that does not conflict",
      ["resolve", "/budget", "--theirs", "x/y"],
      2,
      /does not conflict/,
    ],
    ["an unknown part", ["resolve", "/budget", "--ours", "--part", "all"], 2, /Allowed choices/],
    [
      "a name that cannot resolve",
      ["resolve", "/budget", "--ours", "--author", "a<b"],
      2,
      /INVALID_NAME/,
    ],
    ["an unknown strategy to set", ["policy", "set", "/a", "best"], 2, /INVALID_POLICY/],
    ["a policy path to set that is none", ["policy", "set", "a", "ours"], 2, /INVALID_PATH/],
    ["a policy that is not set", ["policy", "unset", "/a"], 3, /PATH_NOT_FOUND/],
    ["a bad mainline", ["revert", "canonical", "--mainline", "x"], 2, /whole number/],
    [
      "a mainline that is not there",
      ["revert", "canonical", "--mainline", "2"],
      2,
      /INVALID_ARGUMENT/,
    ],
    ["an unknown commit to pick", ["cherry-pick", "nowhere"], 3, /REVISION_NOT_FOUND/],
    ["an unknown branch to reset", ["reset", "x/y", "canonical"], 3, /REF_NOT_FOUND/],
    ["one revision for merge-base", ["merge-base", "canonical"], 2, /missing required argument/],
    [
      "three for is-ancestor",
      ["merge-base", "--is-ancestor", "canonical", "canonical", "canonical"],
      2,
      /exactly two/,
    ],
  ];
  it.each(cases)("%s is one clear error", (_name, args, status, message) => {
    const result = box.run(args);
    expect(result.stderr).toMatch(message);
    expect(result.stderr.trimEnd().split("\n")).toHaveLength(1);
    expect(result).toMatchObject({ status, stdout: "" });
  });

  it("is told of as JSON to programs", () => {
    for (const [args, code] of [
      [["resolve", "/city", "--ours"], "PATH_NOT_FOUND"],
      [["merge", "--continue", "--abort"], "USAGE"],
    ] as const) {
      const { stdout, stderr } = box.run(["--json", ...args]);
      expect(stdout).toBe("");
      expect(JSON.parse(stderr)).toMatchObject({ error: { code, message: expect.any(String) } });
    }
  });

  it("changes nothing", () => {
    expect(everything(box)).toEqual(before);
  });

  it("of a merge that cannot be tried now does not hide it, nor keep it from being given up", () => {
    const other = story(BASE, BOTH);
    other.run(["merge", "flights/try-1", "hotels/try-1"]);
    other.ok(["policy", "set", "/budget", "custom:judge"]);
    expect(other.ok(["status"])).toMatch(/^ {2}merge-[0-9a-f]{8} {2}RESOLVER_NOT_FOUND {2}/m);
    expect(other.json(["merge", "--list"])).toMatchObject([
      { open: null, problem: "RESOLVER_NOT_FOUND" },
    ]);
    expect(other.run(["conflicts"])).toMatchObject({
      status: 3,
      stderr: expect.stringContaining('no resolver "judge"'),
    });
    other.ok(["merge", "--abort"]);
  });

  it("merges unrelated histories only when asked", () => {
    const args = ["merge", "refs/audit/workflow"];
    expect(box.run(args)).toMatchObject({
      status: 4,
      stderr: expect.stringMatching(/--allow-unrelated.*\(UNRELATED_HISTORIES\)/),
    });
    expect(box.run([...args, "--allow-unrelated", "--preview"]).status).toBe(0);
  });

  it("shows help within 80 columns", () => {
    const commands = ["merge", "conflicts", "resolve", "policy", "cherry-pick", "revert", "reset"];
    for (const name of [...commands, "merge-base"]) within80(box.ok(["help", name]));
    within80(box.ok(["policy", "help", "set"]));
    expect(box.ok(["help"])).toContain("Merging:");
  });
});

describe("what a side changed", () => {
  const { value } = fc.letrec<{ value: JsonValue }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom(null, true, 0, 1, "a", "b"),
      fc.array(tie("value"), { maxLength: 5 }),
      fc.dictionary(fc.constantFrom("a", "b", "/", "~", "__proto__"), tie("value")),
    ),
  }));

  it("is what agstate diff tells of stored values", async () => {
    await fc.assert(
      fc.asyncProperty(value, value, async (a, b) => {
        const store = new ObjectStore();
        const [before, after] = [a, b].map((v) => normalize(v, { maxBytes: 1 << 20 }));
        const [left, right] = [before, after].map((v) => store.write(v as JsonValue).link);
        const stored: Change[] = [];
        for await (const change of diffLinks(store.reader(), left, right)) stored.push(change);
        expect([...valueChanges(before, after)]).toEqual(stored);
      }),
      { numRuns: 300 },
    );
  });

  it("is found in a long list by content, however far others moved it", () => {
    const a = Array.from({ length: 50_000 }, (_, i) => `item ${i}`);
    const b = ["new", ...a.with(40_000, "changed")];
    b.splice(20_000, 1);
    expect(longGaps(a, b)).toEqual([
      { aFrom: 0, aTo: 0, bFrom: 0, bTo: 1 },
      { aFrom: 19_999, aTo: 20_000, bFrom: 20_000, bTo: 20_000 },
      { aFrom: 40_000, aTo: 40_001, bFrom: 40_000, bTo: 40_001 },
    ]);
    // Nothing in common over a long way: one gap, at once.
    const c = a.map((item) => `${item}!`);
    expect(longGaps(a, c)).toEqual([{ aFrom: 0, aTo: 50_000, bFrom: 0, bTo: 50_000 }]);
  });
});
