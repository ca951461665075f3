import { createInterface } from "node:readline/promises";
import { AgstateError } from "../core/errors.js";
import { isJsonObject } from "../core/json.js";
import type { Commit } from "../store/types.js";
import type { Workflow } from "../store/workflow.js";
import { columns } from "./render/columns.js";
import { shortId } from "./render/commit.js";
import { cutTo } from "./render/cut.js";
import { escapeLine } from "./render/escape.js";
import { plural } from "./render/sizes.js";
import type { Session } from "./session.js";

/** A step that did something outside, or may have. */
export interface SideEffect {
  readonly number: number;
  readonly name: string;
  readonly action: string;
  /** `in doubt`: begun and not sealed. */
  readonly status: "completed" | "failed" | "in doubt";
  /** Its idempotency key; null when it has none. */
  readonly key: string | null;
  readonly commit: string;
}

/** How many are shown; `--json` shows all. */
const SHOWN = 20;

/** Steps with side effects that one revision has and another has not, by number. */
export async function sideEffectsLeft(
  workflow: Workflow,
  revision: string,
  kept: string,
): Promise<SideEffect[]> {
  const last = new Map<string, Commit>();
  for (const commit of await workflow.sideEffects(revision, kept)) {
    // Branches that are merged give the same numbers, and tell their steps apart by key.
    const id = `${commit.step?.number} ${commit.step?.key ?? commit.author}`;
    if ((last.get(id)?.generation ?? 0) < commit.generation) last.set(id, commit);
  }
  const effects: SideEffect[] = [];
  for (const { id, step } of last.values()) {
    if (step === null) continue;
    const record = await workflow.stepRecord(id);
    const name = isJsonObject(record) ? record.name : undefined;
    effects.push({
      number: step.number,
      name: typeof name === "string" ? name : "(without a name)",
      action: step.action,
      status: step.status === "started" ? "in doubt" : step.status,
      key: step.key ?? null,
      commit: id,
    });
  }
  return effects.sort((a, b) => a.number - b.number);
}

/**
 * Shows the side effects that are left behind, and asks at a terminal.
 *
 * @returns false when a person said no
 * @throws AgstateError `SIDE_EFFECTS_LEFT` where nobody can be asked and `yes` was not given
 */
export async function agreeToLeave(
  session: Session,
  effects: readonly SideEffect[],
  { yes, what, left }: { readonly yes: boolean; readonly what: string; readonly left: string },
): Promise<boolean> {
  if (effects.length === 0) return true;
  const { out } = session;
  const asks = !yes && !out.json && process.stdin.isTTY === true && process.stdout.isTTY === true;
  if (!yes && !asks) {
    const names = effects.slice(0, 5).map(({ number, name }) => `${number} (${escapeLine(name)})`);
    const more = effects.length > names.length ? `, and ${effects.length - names.length} more` : "";
    throw new AgstateError(
      "SIDE_EFFECTS_LEFT",
      `${what} leaves ${plural(effects.length, "step")} with side effects behind, which ${left}: ${names.join(", ")}${more}; what they did outside is not undone; give --yes to go on`,
      { sideEffects: effects },
    );
  }
  if (out.json) return true;
  const { paint } = out;
  await out.line(`These side effects, which ${left}, are not undone:`);
  const rows = effects
    .slice(0, SHOWN)
    .map(({ number, name, action, status, commit }) => [
      `  ${number}`,
      cutTo(escapeLine(name), 30),
      action,
      status === "completed" ? status : paint.bad(status),
      paint.id(shortId(commit)),
    ]);
  for (const line of columns(rows)) await out.line(line);
  if (effects.length > SHOWN) await out.line(paint.dim(`  and ${effects.length - SHOWN} more`));
  if (yes) return true;
  return asksYes("Go on? [y/N] ");
}

/** Asks at the terminal; the end of input is a no. */
async function asksYes(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  const over = new Promise<string>((resolve) => {
    terminal.once("close", () => resolve(""));
  });
  try {
    const answer = await Promise.race([terminal.question(question), over]);
    return /^y(?:es)?$/i.test(answer.trim());
  } finally {
    terminal.close();
  }
}
