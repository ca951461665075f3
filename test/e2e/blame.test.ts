import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CliSandbox } from "../support/cli.js";

describe("agstate blame", () => {
  const box = new CliSandbox();
  const ids: string[] = [];
  afterAll(() => box.remove());

  beforeAll(() => {
    box.ok(["init"]);
    box.ok(["workflow", "create", "trip"]);
    const commit = (author: string, state: unknown) => {
      box.ok(["commit", "-", "--author", author], { input: JSON.stringify(state) });
      ids.push(box.json<{ id: string }>(["log", "-n", "1"])[0]!.id);
    };
    commit("planner", { messages: ["hi"], seats: 2, "a/b": null });
    commit("booker", { messages: ["hi", "Name?", "Ada"], seats: 3, "a/b": null });
  });

  const rows = (...args: string[]) =>
    box
      .ok(["blame", ...args])
      .trimEnd()
      .split("\n")
      .map((line) => line.replace(/ {2}\d{4}-\d\d-\d\d \d\d:\d\d {2}/, "  DATE  "));
  const short = (commit: number) => ids[commit]!.slice(0, 10);

  it("shows who last wrote each member of the state", () => {
    expect(rows()).toEqual([
      `${short(0)}  planner  DATE  /a~1b      null`,
      `${short(1)}  booker   DATE  /messages  ["hi","Name?","Ada"]`,
      `${short(1)}  booker   DATE  /seats     3`,
    ]);
    expect(rows("canonical~1")).toHaveLength(3);
  });

  it("takes a pointer alone, after a revision, and behind its colon", () => {
    const expected = [
      `${short(0)}  planner  DATE  /0    "hi"`,
      `${short(1)}  booker   DATE  /1-2  "Name?" (+1)`,
    ];
    expect(rows("/messages")).toEqual(expected);
    expect(rows("canonical", "/messages")).toEqual(expected);
    expect(rows("canonical:/messages")).toEqual(expected);
    expect(rows("canonical~1:/seats")).toEqual([`${short(0)}  planner  DATE  /seats  2`]);
  });

  it("answers in JSON, a line a value, with the values", () => {
    expect(box.json(["blame", "/messages"])).toMatchObject([
      { path: "/messages/0", from: 0, to: 1, values: ["hi"], commit: { id: ids[0] } },
      { path: "/messages/1", from: 1, to: 3, values: ["Name?", "Ada"], commit: { id: ids[1] } },
    ]);
    expect(box.json(["blame", "/seats"])).toMatchObject([
      { path: "/seats", from: null, to: null, value: 3, boundary: false },
    ]);
  });

  it("colours when it is told to", () => {
    const shown = box.ok(["blame", "/seats"], { env: { FORCE_COLOR: "1" } });
    expect(shown).toContain(`\u001b[33m${short(1)}\u001b[39m`);
  });

  it("tells of a value that is not there", () => {
    const result = box.run(["blame", "/nothing"]);
    expect(result).toMatchObject({ status: 3, stdout: "" });
    expect(result.stderr).toContain("(PATH_NOT_FOUND)");
  });
});
