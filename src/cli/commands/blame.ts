import { parseRevision } from "../../refs/revision-syntax.js";
import { blameLines, withValues } from "../render/blame.js";
import { commitJson } from "../render/commit.js";
import type { Session } from "../session.js";

/**
 * `agstate blame [REVISION] [POINTER]`: who last wrote each member or element of
 * a value. A single argument that begins with `/` is a pointer into canonical;
 * `REVISION:/path` is understood as well.
 */
export async function run(session: Session, args: readonly string[]): Promise<undefined> {
  const [revision, pointer] = operands(args);
  const workflow = await session.workflow();
  // By id, so that the lines and the values are of one commit even when the branch moves.
  const id = await workflow.resolve(revision);
  const lines = await workflow.blame(id, pointer);
  const blamed = withValues(pointer, lines, await workflow.stateAt(id, pointer));
  const { out } = session;
  if (out.json) {
    for (const { line, values } of blamed) {
      const value = line.from === null ? { value: values[0] } : { values };
      await out.value({ ...line, ...value, commit: commitJson(line.commit) });
    }
    return;
  }
  for (const line of blameLines(out.paint, pointer, blamed)) await out.line(line);
}

function operands(args: readonly string[]): [string, string] {
  const [first = "canonical", second] = args;
  if (second === undefined && first.startsWith("/")) return ["canonical", first];
  return [first, second ?? parseRevision(first).pointer ?? ""];
}
