import { renameSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CliSandbox } from "../support/cli.js";

const box = new CliSandbox();
afterAll(() => box.remove());

const R = ["--regions", "regions.json"];

describe("the command line with regions", () => {
  beforeAll(() => {
    box.ok(["init", "eu", "--region", "eu"]);
    box.ok(["init", "us", "--region", "us"]);
    box.ok(["init", "catalogue"]);
    box.write(
      "regions.json",
      JSON.stringify({
        catalogue: "sqlite:catalogue",
        regions: {
          eu: { store: "sqlite:eu", classifications: ["public", "internal", "sensitive"] },
          us: { store: "sqlite:us", classifications: ["public", "internal"] },
        },
        defaults: { retentionPolicy: "P30D" },
      }),
    );
    box.write("state.json", '{"n":1}');
    box.write("chat.json", '{"messages":[{"role":"user","content":"hi"}]}');
    box.ok([...R, "workflow", "create", "trip", "--region", "eu", "--classification", "sensitive"]);
  });

  it("finds a workflow's store for commands that read, write, check and collect", () => {
    expect(box.ok([...R, "workflow", "show", "trip"])).toMatch(/Storage region {2,}eu/);
    // The only one that there is.
    expect(box.ok([...R, "commit", "state.json"])).toMatch(/canonical/);
    expect(box.ok(["cat", "canonical"], { env: { AGSTATE_REGIONS: "regions.json" } })).toContain(
      '"n": 1',
    );
    box.ok([...R, "workflow", "create", "tour", "--region", "us"]);
    expect(box.run([...R, "log"])).toMatchObject({
      status: 2,
      stderr: expect.stringContaining("several workflows"),
    });
    expect(box.ok([...R, "-w", "tour", "log", "--oneline"])).toMatch(/Create workflow tour/);
    expect(box.json([...R, "-w", "tour", "status"])).toMatchObject([
      { workflow: "tour", store: { region: "us" } },
    ]);
    expect(box.ok([...R, "workflow", "list"])).toBe("tour  internal   us\ntrip  sensitive  eu\n");
    expect(box.ok([...R, "fsck"])).toMatch(/^(trip|tour): [\s\S]*(trip|tour): [\s\S]*No problems/);
    expect(box.ok([...R, "gc"])).toMatch(/2 workflows/);
    expect(box.ok([...R, "-w", "tour", "fsck"])).not.toContain("trip");
    expect(box.ok([...R, "workflow", "complete", "tour"])).toMatch(/Completed tour/);
  });

  it("fails closed, with an exit code, and says what to do", () => {
    const refused: [string[], status: number, text: RegExp][] = [
      [["workflow", "create", "x"], 2, /names no region, and there is no default/],
      [["workflow", "create", "x", "--region", "ue"], 2, /did you mean eu/],
      [
        ["workflow", "create", "x", "--region", "us", "--classification", "sensitive"],
        4,
        /may not hold sensitive data/,
      ],
      [["workflow", "create", "trip", "--region", "us"], 4, /belongs to region eu for life/],
      [["-w", "nobody", "log"], 3, /no workflow "nobody" in the catalogue/],
      [["init"], 2, /works on one store/],
      [["doctor"], 2, /works on one store/],
      [["import", "chat.json"], 2, /works on one store/],
    ];
    for (const [args, status, text] of refused) {
      expect(box.run([...R, ...args]), args.join(" ")).toMatchObject({
        status,
        stderr: expect.stringMatching(text),
        stdout: "",
      });
    }
    expect(box.run(["region", "list"])).toMatchObject({
      status: 2,
      stderr: expect.stringContaining("--regions FILE"),
    });
  });

  it("takes a store or regions, never both, and no empty name", () => {
    const both = { status: 2, stderr: expect.stringContaining("give one of them") };
    expect(box.run([...R, "--store", "eu", "log"])).toMatchObject(both);
    expect(box.run([...R, "log"], { env: { AGSTATE_STORE: "eu" } })).toMatchObject(both);
    const env = { AGSTATE_REGIONS: "regions.json" };
    expect(box.run(["--store", "eu", "log"], { env })).toMatchObject(both);
    // It writes workflows, so a fence in the environment is one for it.
    expect(box.run(["--store", "eu", "import", "chat.json"], { env })).toMatchObject(both);
    expect(box.run([...R, "--store", "eu", "doctor"])).toMatchObject(both);
    // It is for all commands, and this one is about a store.
    expect(box.run(["--store", "eu", "doctor"], { env })).toMatchObject({ status: 0 });
    for (const empty of [
      box.run(["--regions", "", "log"]),
      box.run(["log"], { env: { AGSTATE_REGIONS: "" } }),
    ]) {
      expect(empty).toMatchObject({ status: 2, stderr: expect.stringContaining("is empty") });
    }
  });

  it("lists regions: their stores, what they may hold, and what is wrong", () => {
    const list = [...R, "region", "list"];
    const [catalogue, eu, us] = box.json(list);
    const ids = [catalogue, eu, us].map((one) => one?.storeId as string);
    expect(box.ok(list)).toBe(
      [
        "catalogue  good",
        "  store     sqlite:catalogue",
        `  id        ${ids[0]}`,
        "eu  good",
        "  store     sqlite:eu",
        `  id        ${ids[1]}`,
        "  may hold  public, internal, sensitive",
        "us  good",
        "  store     sqlite:us",
        `  id        ${ids[2]}`,
        "  may hold  public, internal",
        "",
      ].join("\n"),
    );
    expect(us).toMatchObject({ region: "us", good: true, problem: null, url: "sqlite:us" });
    renameSync(join(box.directory, "us"), join(box.directory, "away"));
    const down = box.run(list);
    expect(down.status).toBe(3);
    expect(down.stdout).toMatch(
      /us {2}STORE_NOT_FOUND\n[\s\S]* {2}problem {3}region us: there is no/,
    );
    for (const line of down.stdout.split("\n")) {
      expect(line.length <= 80 || line.includes(box.directory), line).toBe(true);
    }
    const coloured = box.run(list, { env: { FORCE_COLOR: "1" } });
    expect(coloured.stdout).toContain("\u001b[");
    expect(box.run(list, { env: { FORCE_COLOR: "1", NO_COLOR: "1" } }).stdout).toBe(down.stdout);
    expect(
      JSON.parse(
        box
          .run(["--json", ...list])
          .stdout.trim()
          .split("\n")[2] as string,
      ),
    ).toMatchObject({ good: false, storeId: null, problem: { code: "STORE_NOT_FOUND" } });
    renameSync(join(box.directory, "away"), join(box.directory, "us"));
  });

  it("enters a workflow that a store has and the catalogue does not", () => {
    box.ok(["--store", "us", "workflow", "create", "found", "--region", "us"]);
    expect(box.run([...R, "-w", "found", "log"])).toMatchObject({ status: 3 });
    expect(box.ok([...R, "region", "adopt", "found", "us"])).toBe(
      "Workflow found is in the catalogue, in region us as internal.\n",
    );
    box.ok([...R, "-w", "found", "log"]);
    expect(box.json([...R, "region", "adopt", "found", "us"])).toMatchObject([
      { workflow: "found", region: "us" },
    ]);
  });

  it("keeps a part of a workflow in another region, and refuses a copy without telling of it", () => {
    const secret = "the card that ends in 4711, of Albany";
    const create = ["workflow", "create", "split", "--region", "eu", "--place"];
    expect(box.run([...R, ...create, "customer"])).toMatchObject({
      status: 2,
      stderr: expect.stringContaining("/state/customer=us"),
    });
    box.ok([...R, ...create, "/state/customer=us", "inference=us"]);
    expect(box.ok([...R, "workflow", "show", "split"])).toMatch(
      /Elsewhere {2,}\/state\/customer in us \(internal\), inference in us \(internal\)/,
    );
    box.write("split.json", JSON.stringify({ customer: { card: secret }, n: 1 }));
    box.ok([...R, "-w", "split", "commit", "split.json"]);
    expect(box.ok([...R, "-w", "split", "cat", "canonical:/customer/card"])).toContain(secret);
    box.write("copy.json", JSON.stringify({ customer: { card: secret }, n: secret }));
    const refused = box.run([...R, "-w", "split", "commit", "copy.json"]);
    expect(refused).toMatchObject({ status: 4, stderr: expect.stringContaining("/state/n") });
    expect(`${refused.stdout}${refused.stderr}`).not.toContain("4711");
    const events = box.json([...R, "-w", "split", "audit"]);
    expect(events.filter(({ kind }) => kind === "refused")).toMatchObject([
      {
        facts: { code: "RESIDENCY_REFUSED", where: "/state/n", region: "us", into: "eu", times: 1 },
      },
    ]);
    const alone = ["--store", "eu", "-w", "split"];
    expect(box.ok([...alone, "cat", "canonical"])).toContain('"reason": "region"');
    expect(box.run([...alone, "commit", "copy.json"])).toMatchObject({
      status: 4,
      stderr: expect.stringContaining("--regions"),
    });
    expect(box.ok([...R, "-w", "split", "fsck"])).toMatch(/1 payload in other regions/);
    expect(box.ok([...R, "-w", "split", "gc"])).toMatch(/split: /);
  });
});
