import { describe, expect, it } from "vitest";
import { conformanceCases, runCase } from "../../src/testing/index.js";
import { canaries } from "./canaries.js";
import { memoryTarget } from "./targets.js";

/** The name of the first case that a target fails, or null. */
async function firstFailure(target: typeof memoryTarget): Promise<string | null> {
  for (const one of conformanceCases) {
    try {
      await runCase(target, one);
    } catch {
      return one.name;
    }
  }
  return null;
}

describe("the suite fails a backend that", () => {
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

  it("nothing: the model itself passes", async () => {
    expect(await firstFailure(memoryTarget)).toBeNull();
  });
});
