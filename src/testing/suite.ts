import type { ConformanceCase, OpenedStorage } from "./case.js";
import { belowCases } from "./cases/below.js";
import { collectCases } from "./cases/collect.js";
import { compactCases } from "./cases/compact.js";
import { graphCases } from "./cases/graph.js";
import { lifeCases } from "./cases/life.js";
import { moveCases } from "./cases/moves.js";
import { objectCases } from "./cases/objects.js";
import { pendingCases } from "./cases/pending.js";
import { redactCases } from "./cases/redact.js";
import { reflogCases } from "./cases/reflog.js";
import { refCases } from "./cases/refs.js";
import { watchCases } from "./cases/watch.js";
import { workflowCases } from "./cases/workflows.js";

/** Everything that a backend must do; of what it may leave out, how it must be if it is there. */
export const conformanceCases: readonly ConformanceCase[] = [
  ...workflowCases,
  ...moveCases,
  ...refCases,
  ...reflogCases,
  ...objectCases,
  ...belowCases,
  ...graphCases,
  ...collectCases,
  ...compactCases,
  ...redactCases,
  ...pendingCases,
  ...lifeCases,
  ...watchCases,
];

/** A backend under test: `open` gives a new, empty storage each time. */
export interface ConformanceTarget {
  readonly name: string;
  /** Runs what needs very large amounts on a tenth of them: for the same storage reached by another way. */
  readonly small?: boolean;
  open(): Promise<OpenedStorage>;
}

/** What the suite needs of a test runner; vitest, Jest and `node:test` all have it. */
export interface TestApi {
  describe(name: string, body: () => void): unknown;
  it(name: string, body: () => Promise<void>): unknown;
}

/**
 * Declares the suite as tests, one a case:
 *
 *     import { describe, it } from "vitest";
 *     conformanceSuite({ name: "mine", open }, { describe, it });
 */
export function conformanceSuite(target: ConformanceTarget, { describe, it }: TestApi): void {
  describe(`${target.name} as a storage`, () => {
    for (const one of conformanceCases) it(one.name, () => runCase(target, one));
  });
}

/** Runs one case on a storage of its own. */
export async function runCase(target: ConformanceTarget, one: ConformanceCase): Promise<void> {
  const opened = await target.open();
  try {
    await one.run({ ...opened, small: target.small ?? false });
  } finally {
    await opened.destroy();
  }
}

export interface ConformanceFailure {
  readonly name: string;
  readonly error: unknown;
}

/** Runs the suite without a test runner, and gives the cases that failed. */
export async function runConformance(target: ConformanceTarget): Promise<ConformanceFailure[]> {
  const failures: ConformanceFailure[] = [];
  for (const one of conformanceCases) {
    try {
      await runCase(target, one);
    } catch (error) {
      failures.push({ name: one.name, error });
    }
  }
  return failures;
}
