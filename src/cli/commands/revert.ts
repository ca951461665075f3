import type { Session } from "../session.js";
import { type Options, pick } from "./pick.js";

/** `agstate revert REV`: undoes the change that a commit made, by a new commit. */
export function run(
  session: Session,
  args: readonly string[],
  options: Options & { readonly on?: string },
): Promise<undefined | number> {
  return pick(session, "revert", args[0] as string, options.on, options);
}
