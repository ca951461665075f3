import { EXIT } from "../exit-codes.js";
import { changeLines } from "../render/changes.js";
import { plural } from "../render/sizes.js";
import type { Session } from "../session.js";

interface Options {
  readonly path?: string;
  readonly exitCode?: boolean;
}

/** `agstate diff OLDER NEWER`, `agstate diff OLDER..NEWER`; with one revision, canonical is the older. */
export async function run(
  session: Session,
  args: readonly string[],
  options: Options,
): Promise<undefined | number> {
  const workflow = await session.workflow();
  const [older, newer] = sides(args);
  const { out } = session;
  let count = 0;
  const kinds = { added: 0, removed: 0, changed: 0 };
  for (const change of await workflow.diff(older, newer, options.path)) {
    count++;
    kinds[change.kind]++;
    if (out.json) await out.value(change);
    else for (const line of changeLines(out.paint, change)) await out.line(line);
  }
  if (!out.json) {
    if (count > 0) await out.line();
    await out.line(
      out.paint.dim(
        count === 0
          ? "No differences."
          : `${plural(count, "change")}: ${kinds.added} added, ${kinds.removed} removed, ${kinds.changed} changed`,
      ),
    );
  }
  return options.exitCode === true && count > 0 ? EXIT.negative : undefined;
}

function sides(args: readonly string[]): [string, string] {
  const [first = "", second] = args;
  if (second !== undefined) return [first, second];
  const dots = first.indexOf("..");
  if (dots >= 0) return [first.slice(0, dots) || "canonical", first.slice(dots + 2) || "canonical"];
  return ["canonical", first];
}
