import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import type { Branch, JsonValue, OpenStoreOptions, RunOptions, Workflow } from "../../src/index.js";
import { type Child, startChild, startTogether } from "./child-processes.js";
import { scratchFolder } from "./sqlite-store.js";
import { type Backend, makeStore } from "./stores.js";

const RUN_STEPS = new URL("../fault/children/run-steps.mjs", import.meta.url);

/** A step as a child is to do it. */
export interface StepPlan {
  readonly name: string;
  readonly action?: "read" | "inference" | "write" | "execute";
  readonly memoize?: boolean;
  readonly inDoubt?: "retry" | "ask" | "fail" | "probe";
  readonly retry?: { readonly attempts: number; readonly pauseMs: number };
  /** Attempts up to this one fail. */
  readonly fails?: number;
  /** The longest that the tool takes before its effect. */
  readonly slowMs?: number;
  /** The longest that the code waits before it asks for the step. */
  readonly lateMs?: number;
  /** Where the process stands still: before the step has begun, in its tool, or after its effect. */
  readonly hang?: { readonly moment: "asked" | "called" | "happened"; readonly attempt?: number };
}

/** A run as a child is to go on with it. */
export interface RunPlan {
  readonly branch: string;
  readonly form: "series" | "promise" | "all";
  readonly steps: readonly StepPlan[];
  readonly options?: RunOptions;
}

/** Why a run stopped. */
export interface Stopped {
  readonly code: string | null;
  readonly name: string;
  readonly message: string;
  readonly details: { readonly [key: string]: JsonValue };
}

/** What a child said with a word, of one branch or of all: the words after it. */
export function told(child: Child, word: string, branch?: string): string[][] {
  return child.lines
    .map((line) => line.split(" "))
    .filter(([first, of]) => first === word && (branch === undefined || of === branch))
    .map((words) => words.slice(1));
}

function last<T>(child: Child, word: string, branch?: string): T | undefined {
  const words = told(child, word, branch).at(-1);
  return words === undefined ? undefined : (JSON.parse(words.slice(1).join(" ")) as T);
}

export const resultOf = (child: Child, branch?: string) => last<JsonValue>(child, "result", branch);
export const stopOf = (child: Child, branch?: string) => last<Stopped>(child, "stopped", branch);

/** Lets a child go on until it ends by itself, in good order: a rejection that nobody handles would end it otherwise. */
export async function end(child: Child): Promise<Child> {
  expect(await child.ended, child.errors()).toEqual({ code: 0, signal: null });
  return child;
}

/** Waits until a child stands still so many times, and kills it. */
export async function killWhereItStands(child: Child, times = 1): Promise<void> {
  await child.said("stands", times);
  child.kill();
  expect((await child.ended).signal).toBe("SIGKILL");
}

/** Runs of processes on one store. */
export interface Processes {
  readonly workflow: Workflow;
  make(branch: string): Promise<Branch>;
  /** Starts a process that goes on with runs. */
  start(...runs: readonly RunPlan[]): Child;
  /** Starts processes that go on with one run, all at once; `persistent` ones begin again when another has the branch. */
  startMany(count: number, run: RunPlan, persistent?: boolean): Promise<Child[]>;
  /** Effects that happened: name, key and attempt of each. */
  effects(): string[][];
}

export async function processesOn(
  backend: Backend,
  options: OpenStoreOptions = {},
): Promise<Processes> {
  const { store, url } = await makeStore(backend, options);
  const workflow = await store.createWorkflow("w");
  const file = join(scratchFolder(), "effects");
  writeFileSync(file, "");
  const base = { url, workflow: workflow.id, effects: file };
  return {
    workflow,
    make: (branch) => workflow.branch({ agent: "a", branch }),
    start: (...runs) => startChild(RUN_STEPS, { ...base, runs }),
    startMany: (count, run, persistent = false) => {
      const args = { ...base, runs: [run], together: true, persistent };
      return startTogether(
        RUN_STEPS,
        Array.from({ length: count }, () => args),
      );
    },
    effects: () => {
      const lines = readFileSync(file, "utf8").split("\n").filter(Boolean);
      return lines.map((line) => line.split(" "));
    },
  };
}
