import type { Change } from "../../merge/diff.js";
import { parseRevision } from "../../refs/revision-syntax.js";
import { changeLines } from "../render/changes.js";
import { commitJson, decorationsOf, fullCommit } from "../render/commit.js";
import { mergeRecordLines } from "../render/merge-record.js";
import { sessionLines } from "../render/session-mark.js";
import { plural } from "../render/sizes.js";
import { prettyJson, readableLines } from "../render/value.js";
import type { Session } from "../session.js";
import { traceReader } from "../trace-link.js";
import { run as cat } from "./cat.js";

/** How many changes are shown; `agstate diff` shows all. */
const CHANGES_SHOWN = 50;

/** How many lines of a step record are shown; `--json` shows all. */
const RECORD_LINES_SHOWN = 60;

interface Options {
  readonly traceUrl?: string;
}

/** `agstate show`: a commit with its step or merge record and what it changed; or, for `REV:/path`, the value there. */
export async function run(
  session: Session,
  args: readonly string[],
  options: Options,
): Promise<undefined> {
  const revision = args[0] ?? "canonical";
  if (parseRevision(revision).pointer !== null) return cat(session, [revision], {});
  const readTrace = traceReader(options.traceUrl);
  const workflow = await session.workflow();
  const { out } = session;
  const commit = await workflow.commitAt(revision);
  const decorations = decorationsOf(await workflow.refs());
  const record = await workflow.stepRecord(commit.id);
  const merge = await workflow.mergeRecord(commit.id);
  const mark = await workflow.sessionAt(commit.id);
  const [parent] = commit.parents;
  const changes: Change[] = [];
  let more = 0;
  if (parent !== undefined) {
    for await (const change of workflow.changes(parent, commit.id)) {
      if (out.json || changes.length < CHANGES_SHOWN) changes.push(change);
      else more++;
    }
  }
  if (out.json) {
    const state = parent === undefined ? { state: await workflow.stateAt(commit.id) } : {};
    return void (await out.value({
      ...commitJson(commit, decorations, readTrace),
      stepRecord: record,
      ...(merge === null ? {} : { mergeRecord: merge }),
      ...(mark === null ? {} : { session: mark }),
      changes,
      ...state,
    }));
  }
  for (const line of fullCommit(out.paint, commit, decorations, readTrace)) await out.line(line);
  if (record !== null) {
    await out.line();
    await out.line(out.paint.bold("Step record"));
    const lines = readableLines(record, 78);
    for (const line of lines.slice(0, RECORD_LINES_SHOWN)) await out.line(`  ${line}`.trimEnd());
    if (lines.length > RECORD_LINES_SHOWN) {
      const rest = plural(lines.length - RECORD_LINES_SHOWN, "more line", "more lines");
      await out.line(out.paint.dim(`  ... ${rest}; --json shows all`));
    }
  }
  if (merge !== null) {
    await out.line();
    for (const line of mergeRecordLines(out.paint, merge)) await out.line(line);
  }
  if (mark !== null) {
    await out.line();
    for (const line of sessionLines(out.paint, mark)) await out.line(line);
    // Where nothing else is told, it is no news that the state stayed.
    if (changes.length === 0) return;
  }
  await out.line();
  if (parent === undefined) {
    await out.line(out.paint.bold("State"));
    return void (await out.line(indent(prettyJson(await workflow.stateAt(commit.id)))));
  }
  await out.line(out.paint.bold(changes.length === 0 ? "The state is as before" : "Changes"));
  for (const change of changes) {
    for (const line of changeLines(out.paint, change)) await out.line(`  ${line}`);
  }
  if (more > 0)
    await out.line(out.paint.dim(`  and ${plural(more, "more change", "more changes")}`));
}

function indent(text: string): string {
  return text.replace(/^/gm, "  ");
}
