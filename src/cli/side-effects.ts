import { createInterface } from "node:readline/promises";
import { isAgstateError } from "../core/errors.js";
import type { DiscardOptions, LeftBehind } from "../store/discard.js";
import type { SideEffect } from "../store/side-effects.js";
import { columns } from "./render/columns.js";
import { shortId } from "./render/commit.js";
import { cutTo } from "./render/cut.js";
import { escapeLine } from "./render/escape.js";
import type { Session } from "./session.js";

/** How something is discarded: looked after, and only if the branch is still where that was done. */
interface How {
  readonly sideEffects: NonNullable<DiscardOptions["sideEffects"]>;
  readonly expected?: string;
}

/** How many are shown; `--json` shows all. */
const SHOWN = 20;

/**
 * Discards a branch's history with open eyes: the side effects that are left behind are shown, before it is done at a
 * terminal, where it is asked whether to go on; after it with `yes`.
 *
 * @param discard does it, if the branch is at the commit that is expected
 * @returns null when a person said no, and nothing was done
 * @throws AgstateError `SIDE_EFFECTS_LEFT` where nobody can be asked and `yes` was not given
 */
export async function discardAgreed<Result extends LeftBehind>(
  session: Session,
  { yes, left }: { readonly yes: boolean; readonly left: string },
  discard: (how: How) => Promise<Result>,
): Promise<Result | null> {
  const { json } = session.out;
  if (!yes) {
    const asks = !json && process.stdin.isTTY === true && process.stdout.isTTY === true;
    try {
      return await discard({ sideEffects: "refuse" });
    } catch (error) {
      if (!asks || !isAgstateError(error, "SIDE_EFFECTS_LEFT")) throw error;
      const { head, sideEffects } = error.details as { head: string; sideEffects: SideEffect[] };
      await show(session, sideEffects, left);
      if (!(await asksYes("Go on? [y/N] "))) return null;
      // What was shown, and nothing more.
      return discard({ sideEffects: "ignore", expected: head });
    }
  }
  const result = await discard({ sideEffects: "tell" });
  if (!json) await show(session, result.sideEffects ?? [], left);
  return result;
}

async function show(session: Session, effects: readonly SideEffect[], left: string): Promise<void> {
  if (effects.length === 0) return;
  const { out } = session;
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
