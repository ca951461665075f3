import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import stringWidth from "string-width";
import { afterAll, describe, expect, it } from "vitest";
import { CliSandbox } from "../support/cli.js";

const boxes: CliSandbox[] = [];
afterAll(() => {
  for (const box of boxes) box.remove();
});

function within80(text: string): string[] {
  const lines = text.trimEnd().split("\n");
  for (const line of lines) expect(stringWidth(line), line).toBeLessThanOrEqual(80);
  return lines;
}

/** A store with an encrypted workflow, and how commands are run with its keys. */
function begin() {
  const box = new CliSandbox();
  boxes.push(box);
  box.ok(["init", "--region", "eu"]);
  const made = box.ok(["keys", "new", "my.key"]);
  const env = { AGSTATE_KEYS: "file:my.key" };
  box.ok(
    [
      ...["workflow", "create", "trip", "--region", "eu", "--classification", "sensitive"],
      ...["--subjects", "/state/users/{subject}", "--state", "-"],
    ],
    { input: '{"n":7,"users":{"c1":{"name":"Ann"},"c2":{"name":"Bob"}}}', env },
  );
  return { box, env, made };
}

describe("agstate keys", () => {
  it("makes a key file for its owner alone, by which workflows are encrypted", () => {
    const { box, env, made } = begin();
    const file = join(box.directory, "my.key");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const version = /version ([0-9a-f]{16})\./.exec(within80(made)[0] as string)?.[1];
    expect(box.run(["keys", "new", "my.key"])).toMatchObject({ status: 2 });

    const shown = within80(box.ok(["keys"], { env }));
    expect(shown.map((line) => line.trim().split(/\s{2,}/))).toEqual([
      ["Workflow", "trip"],
      ["Classification", "sensitive"],
      ["Encrypted", "yes, AES-SIV"],
      ["Key", "default"],
      ["Version", version],
      ["At hand", "yes"],
      ["Subjects", "/state/users/{subject}"],
    ]);
    expect(box.ok(["cat", "canonical", "/n"], { env })).toBe("7\n");
    expect(box.ok(["--keys", "file:my.key", "cat", "canonical", "/n"])).toBe("7\n");
    expect(box.json(["keys"])).toMatchObject([{ keyed: "payloads", key: { readable: false } }]);
  });

  it("lets nobody read payloads, or write, without the key, and tells the rest", () => {
    const { box, env } = begin();
    expect(box.ok(["log", "--oneline"])).toContain("Create workflow trip");
    expect(JSON.parse(box.ok(["cat", "canonical"]))).toMatchObject({
      n: { $agstate: "withheld", reason: "key" },
    });
    const written = box.run(["--json", "commit", "-"], { input: '{"n":8}' });
    expect(written.status).toBe(5);
    expect(JSON.parse(written.stderr)).toMatchObject({
      error: { code: "KEY_UNAVAILABLE", details: { keyName: "default", workflow: "trip" } },
    });
    expect(box.ok(["fsck"])).toContain("No problems.");
    const wrong = box.run(["--keys", "my.key", "log"]);
    expect(wrong).toMatchObject({ status: 2, stdout: "" });
    expect(wrong.stderr).toContain("file:PATH");
    box.ok(["commit", "-"], { input: '{"n":8}', env });
    expect(box.ok(["cat", "canonical", "/n"], { env })).toBe("8\n");
  });

  it("rotates a key, and needs the new one from then on", () => {
    const { box, env } = begin();
    const renewed = within80(box.ok(["keys", "new", "my.key", "--renew"]));
    expect(renewed[0]).toMatch(/^Put a new version into my\.key: version [0-9a-f]{16}\.$/);
    const lines = within80(box.ok(["keys", "rotate", "--actor", "ops"], { env }));
    expect(lines[0]).toMatch(/^The key of trip is wrapped by default [0-9a-f]{16},$/);
    expect(box.ok(["cat", "canonical", "/n"], { env })).toBe("7\n");
    expect(box.run(["keys", "rotate", "--to", "none"], { env })).toMatchObject({ status: 5 });
    expect(box.run(["keys", "rotate"])).toMatchObject({ status: 5 });
    expect(within80(box.ok(["audit"])).join("\n")).toContain("key-rotated");
  });

  it("destroys a subject's key, then all, and asks for it to be meant", () => {
    const { box, env } = begin();
    const destroy = ["keys", "destroy", "--reason", "asked for it", "--actor", "dpo"];
    const unsure = box.run(destroy, { env });
    expect(unsure).toMatchObject({ status: 2, stdout: "" });
    expect(unsure.stderr).toContain("--yes");
    expect(box.run(["keys", "destroy", "--yes"], { env })).toMatchObject({ status: 2 });

    const done = within80(box.ok([...destroy, "--subject", "c1", "--yes"], { env }));
    expect(done[0]).toBe("Destroyed the key of subject c1 of trip.");
    const users = JSON.parse(box.ok(["cat", "canonical", "/users"], { env }));
    expect(users).toEqual({
      c1: { $agstate: "withheld", reason: "erased", object: expect.any(String) },
      c2: { name: "Bob" },
    });
    const back = { input: '{"users":{"c1":"again"}}', env };
    expect(box.run(["commit", "-"], back)).toMatchObject({ status: 3 });

    box.ok(["hold", "add", "canonical", "--reason", "lawsuit", "--name", "case-7"], { env });
    const held = box.run([...destroy, "--yes"], { env });
    expect(held).toMatchObject({ status: 4 });
    expect(held.stderr).toContain("case-7");
    box.ok(["hold", "release", "case-7", "--reason", "over"], { env });
    box.ok([...destroy, "--yes"], { env });
    expect(JSON.parse(box.ok(["cat", "canonical"], { env }))).toMatchObject({
      n: { reason: "erased" },
    });
    expect(within80(box.ok(["keys"], { env })).join("\n")).toMatch(/Destroyed .*dpo/);
    expect(box.ok(["fsck"], { env })).toContain("No problems.");
    expect(box.json(["audit"]).filter(({ kind }) => kind === "key-destroyed")).toMatchObject([
      { actor: "dpo", facts: { why: "asked for it" } },
      { actor: "dpo", facts: { key: "keys/workflow" } },
    ]);
    expect(existsSync(join(box.directory, "my.key"))).toBe(true);
  });
});
