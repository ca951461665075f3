import { AgstateError } from "../../core/errors.js";
import { EXIT } from "../exit-codes.js";
import type { Session } from "../session.js";

/** `agstate merge-base`: best common ancestors, full ids as Git prints them; exit code 1 when there is none. */
export async function run(
  session: Session,
  args: readonly string[],
  options: { readonly all?: boolean; readonly isAncestor?: boolean },
): Promise<undefined | number> {
  const { out } = session;
  const [first, ...others] = args as [string, ...string[]];
  const workflow = await session.workflow();
  if (options.isAncestor === true) {
    const [descendant] = others;
    if (descendant === undefined || others.length > 1) {
      throw new AgstateError("INVALID_ARGUMENT", "--is-ancestor takes exactly two revisions");
    }
    const isAncestor = await workflow.isAncestor(first, descendant);
    if (out.json) await out.value({ isAncestor });
    return isAncestor ? undefined : EXIT.negative;
  }
  const all = await workflow.mergeBases(first, ...others);
  const bases = options.all === true ? all : all.slice(0, 1);
  if (out.json) await out.value({ bases });
  else for (const id of bases) await out.line(out.paint.id(id));
  return bases.length === 0 ? EXIT.negative : undefined;
}
