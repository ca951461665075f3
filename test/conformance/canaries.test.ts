import { beforeAll, describe, expect, it } from "vitest";
import { type ConformanceCase, conformanceCases, runCase } from "../../src/testing/index.js";
import { canaries } from "./canaries.js";
import { memoryTarget } from "./targets.js";

/** The cases, with what the model takes for each, in milliseconds. */
const cases: { one: ConformanceCase; took: number }[] = [];

/** The name of the first case that a target fails, or null; the briefest cases come first. */
async function firstFailure(target: typeof memoryTarget): Promise<string | null> {
  for (const { one } of cases) {
    try {
      await runCase(target, one);
    } catch {
      return one.name;
    }
  }
  return null;
}

describe("the suite fails a backend that", () => {
  let failed: string | null = null;
  // Here, as all the others go by it: a suite that fails whatever there is would pass them.
  beforeAll(async () => {
    for (const one of conformanceCases) {
      const began = performance.now();
      await runCase(memoryTarget, one).catch(() => {
        failed ??= one.name;
      });
      cases.push({ one, took: performance.now() - began });
    }
    cases.sort((a, b) => a.took - b.took);
  });

  for (const [name, canary] of Object.entries(canaries)) {
    // At the same time: what never wakes is waited for.
    it.concurrent(name, async () => {
      const target = {
        name,
        async open() {
          const opened = await memoryTarget.open();
          return { ...opened, storage: canary(opened.storage) };
        },
      };
      expect(await firstFailure(target)).not.toBeNull();
    });
  }

  it("nothing: the model itself passes", () => {
    expect(cases).toHaveLength(conformanceCases.length);
    expect(failed).toBeNull();
  });
});
