import { AgstateError } from "../../core/errors.js";
import { columns } from "../render/columns.js";
import { shortId, subjectOf } from "../render/commit.js";
import { escapeLine } from "../render/escape.js";
import type { Session } from "../session.js";

/** `agstate tag`: lists, creates and deletes. */
export async function run(
  session: Session,
  args: readonly string[],
  options: { delete?: boolean },
): Promise<undefined> {
  const { out } = session;
  const workflow = await session.workflow();
  const [name, revision] = args;
  if (options.delete === true) {
    if (name === undefined) throw new AgstateError("INVALID_ARGUMENT", "name the tag to delete");
    const { id } = await workflow.deleteTag(name);
    if (out.json) return void (await out.value({ deleted: `refs/tags/${name}`, id }));
    return void (await out.line(`Deleted tag ${escapeLine(name)}, which was at ${shortId(id)}.`));
  }
  if (name !== undefined) {
    const tag = await workflow.tag(name, revision ?? "canonical");
    if (out.json) return void (await out.value(tag));
    return void (await out.line(`Tagged ${out.paint.id(shortId(tag.id))} as ${escapeLine(name)}.`));
  }
  const rows: string[][] = [];
  for (const tag of await workflow.refs("refs/tags/")) {
    if (out.json) await out.value(tag);
    else {
      const commit = await workflow.commitAt(tag.name);
      const short = tag.name.slice("refs/tags/".length);
      rows.push([
        out.paint.tag(escapeLine(short)),
        out.paint.id(shortId(tag.id)),
        subjectOf(commit.message),
      ]);
    }
  }
  for (const line of columns(rows)) await out.line(line);
}
