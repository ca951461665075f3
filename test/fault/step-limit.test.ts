import { expect, it } from "vitest";
import { resultOf, startChild } from "../support/child-processes.js";
import { storePlace } from "../support/sqlite-store.js";

const WAIT = new URL("./children/wait-for-limit.mjs", import.meta.url);

it("a step's time limit comes, also where the process has nothing else to wait for", async () => {
  const child = startChild(WAIT, { path: storePlace() });
  expect(await resultOf(child)).toEqual(["STEP_IN_DOUBT", "TimeoutError", [1]]);
});
