import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const INDEX = fileURLToPath(new URL("../../dist/index.js", import.meta.url));

it("OpenTelemetry's API is not loaded with the library, but by the first store that is to tell it something", () => {
  const script = `
    const { openStore } = await import(${JSON.stringify(INDEX)});
    const { default: module } = await import("node:module");
    const loaded = () => Object.keys(module._cache).some((path) => path.includes("@opentelemetry"));
    const said = [loaded()];
    await openStore("memory:", { tracing: false });
    said.push(loaded());
    await openStore("memory:");
    said.push(loaded());
    console.log(JSON.stringify(said));
  `;
  const { stdout, stderr } = spawnSync(
    process.execPath,
    ["--input-type=module", "--eval", script],
    { encoding: "utf8" },
  );
  expect(stderr).toBe("");
  expect(JSON.parse(stdout)).toEqual([false, false, true]);
});
