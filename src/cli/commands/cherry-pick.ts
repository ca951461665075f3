import type { Session } from "../session.js";
import { type Options, pick } from "./pick.js";

/** `agstate cherry-pick REV`: applies the change that a commit made. */
export function run(
  session: Session,
  args: readonly string[],
  options: Options & { readonly onto?: string },
): Promise<undefined | number> {
  return pick(session, "cherry-pick", args[0] as string, options.onto, options);
}
