import { type Command, InvalidArgumentError } from "commander";
import type { Session } from "./session.js";

/** A command's work: loaded when it is called, so that starting up stays fast. */
export type Run<Options> = (
  session: Session,
  args: readonly string[],
  options: Options,
) => Promise<undefined | number>;

/** Makes the action of a command of its module, run in a session of its own. */
export type MakeAction = <Options>(
  load: () => Promise<{ run: Run<Options> }>,
) => (...received: unknown[]) => Promise<void>;

export function command(parent: Command, usage: string, description: string): Command {
  return parent.command(usage).description(description);
}

/** Reads a number of things, of 1 or more. */
export function count(text: string): number {
  if (!/^[0-9]+$/.test(text) || Number(text) < 1 || !Number.isSafeInteger(Number(text))) {
    throw new InvalidArgumentError("It must be a whole number of 1 or more.");
  }
  return Number(text);
}
