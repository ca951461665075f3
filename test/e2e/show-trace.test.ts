import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { openStore } from "../../src/index.js";
import { CliSandbox } from "../support/cli.js";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";

let box: CliSandbox;
beforeEach(() => {
  box = new CliSandbox();
  onTestFinished(() => box.remove());
  box.ok(["init"]);
  box.ok(["workflow", "create", "trip"]);
});

/** A commit that was written in a trace. */
async function commit(trace: string): Promise<void> {
  const store = await openStore(`sqlite:${join(box.directory, ".agstate")}`);
  await (await (await store.workflow("trip")).canonical()).commit({ state: { trace }, trace });
  await store.close();
}

const traceOf = (shown: string) => /^Trace: {2}(.*)$/m.exec(shown)?.[1];

describe("the trace of a commit", () => {
  it("is shown by its id, and whether there is anything of it", async () => {
    await commit(`00-${TRACE}-${SPAN}-01`);
    expect(traceOf(box.ok(["show"]))).toBe(`${TRACE}, span ${SPAN}`);
    expect(traceOf(box.ok(["log", "-n", "1"]))).toBe(`${TRACE}, span ${SPAN}`);
    await commit(`00-${TRACE}-${SPAN}-02`);
    expect(traceOf(box.ok(["show"]))).toBe(`${TRACE}, span ${SPAN}, not sampled`);
    const [shown] = box.json(["show"]);
    expect(shown).toMatchObject({ trace: `00-${TRACE}-${SPAN}-02`, traceId: TRACE, spanId: SPAN });
    expect(shown).not.toHaveProperty("traceUrl");
    expect(box.ok(["show", "canonical~2"])).not.toContain("Trace:");
    expect(box.json(["show", "canonical~2"])[0]).not.toHaveProperty("traceId");
  });

  it("of a later version of the form is read as well", async () => {
    await commit(`01-${TRACE}-${SPAN}-01-more`);
    expect(traceOf(box.ok(["show"]))).toBe(`${TRACE}, span ${SPAN}`);
  });

  it.each([
    "run 42",
    `00-${TRACE}-${SPAN}-01-more`,
    `00-${"0".repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${"0".repeat(16)}-01`,
    `ff-${TRACE}-${SPAN}-01`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
  ])("that is not W3C's is shown as it is: %s", async (trace) => {
    await commit(trace);
    expect(traceOf(box.ok(["show", "--trace-url", "https://traces.example/{traceId}"]))).toBe(
      trace,
    );
    expect(box.json(["show"])[0]).toMatchObject({ trace });
    expect(box.json(["show"])[0]).not.toHaveProperty("traceId");
  });

  it("has a URL where a template says how", async () => {
    await commit(`00-${TRACE}-${SPAN}-01`);
    const template = "https://traces.example/t/{traceId}?span={spanId}&again={traceId}&x={x}";
    const url = `https://traces.example/t/${TRACE}?span=${SPAN}&again=${TRACE}&x={x}`;
    const shown = `Trace:  ${TRACE}, span ${SPAN}\n        ${url}\n`;
    for (const args of [["show"], ["log", "-n", "1"], ["log", "--graph", "-n", "1"]]) {
      expect(box.ok([...args, "--trace-url", template]).replaceAll("| ", "")).toContain(
        args.includes("--graph") ? url : shown,
      );
      expect(box.json([...args, "--trace-url", template])[0]).toMatchObject({ traceUrl: url });
    }
    const env = { AGSTATE_TRACE_URL: template };
    expect(box.ok(["show"], { env })).toContain(shown);
    expect(box.ok(["show", "canonical~1"], { env })).not.toContain("traces.example");
    expect(box.ok(["show"], { env: { AGSTATE_TRACE_URL: "" } })).not.toContain("http");
  });

  it.each(["https://traces.example/", "traces.example/{traceId}", "{traceId}"])(
    "has none by a template that gives no URL of a trace, which is an error: %s",
    async (template) => {
      for (const command of ["show", "log"]) {
        const { status, stdout, stderr } = box.run([command, "--trace-url", template]);
        expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
        expect(stderr).toMatch(/^agstate: .*--trace-url.*\{traceId\}.*\(INVALID_ARGUMENT\)\n$/);
        expect(stderr).toContain(template);
      }
    },
  );
});
