import { expect, it } from "vitest";
import {
  end,
  killWhereItStands,
  processesOn,
  type RunPlan,
  resultOf,
  told,
} from "./step-processes.js";

/** Declares the test of one run that two processes resume at once. */
export function twoResumes(store: "sqlite" | "postgres"): void {
  it(`of one run by two processes is won by one, and both tell its result in the end, on ${store} (STP-07)`, async () => {
    const { make, start, startMany, effects } = await processesOn(store);
    await make("x");
    const run = (hang: boolean): RunPlan => ({
      branch: "agents/a/x",
      form: "series",
      steps: [
        { name: "one", action: "write", slowMs: 10 },
        { name: "two", slowMs: 10, ...(hang ? { hang: { moment: "asked" } } : {}) },
        { name: "three", slowMs: 10 },
      ],
    });
    await killWhereItStands(start(run(true)));
    const both = await startMany(2, run(false), true);
    for (const child of both) await end(child);
    const [first, second] = both.map((child) => resultOf(child));
    expect(first).toEqual(["one", "two", "three"].map((is) => expect.objectContaining({ is })));
    expect(second).toEqual(first);
    expect(effects().map(([name]) => name)).toEqual(["one", "two", "three"]);
    // What the first process left was done once, by whichever of the two.
    const calls = both.map((child) => told(child, "called").length);
    expect(calls[0]! + calls[1]!).toBe(2);
  });
}
