import { CANONICAL_REF } from "../../refs/names.js";
import type { Commit } from "../../store/types.js";
import { commitJson, decorationsOf, fullCommit, onelineCommit } from "../render/commit.js";
import { besideGraph, GraphRenderer } from "../render/graph.js";
import type { Session } from "../session.js";
import { traceReader } from "../trace-link.js";

interface Options {
  readonly maxCount?: number;
  readonly all?: boolean;
  readonly graph?: boolean;
  readonly oneline?: boolean;
  readonly firstParent?: boolean;
  readonly traceUrl?: string;
}

/** `agstate log`. */
export async function run(
  session: Session,
  args: readonly string[],
  options: Options,
): Promise<undefined> {
  const { out } = session;
  const readTrace = traceReader(options.traceUrl);
  const workflow = await session.workflow();
  const decorations = decorationsOf(await workflow.refs());
  const commits = workflow.log({
    ...(options.all === true ? {} : { revisions: args.length > 0 ? args : [CANONICAL_REF] }),
    ...(options.maxCount === undefined ? {} : { limit: options.maxCount }),
    ...(options.firstParent === undefined ? {} : { firstParent: options.firstParent }),
  });
  if (out.json) {
    for await (const commit of commits) await out.value(commitJson(commit, decorations, readTrace));
    return;
  }
  const text = (commit: Commit): string[] =>
    options.oneline === true
      ? [onelineCommit(out.paint, commit, decorations)]
      : fullCommit(out.paint, commit, decorations, readTrace);
  if (options.graph === true) return drawGraph(session, commits, text, options.oneline !== true);
  let first = true;
  for await (const commit of commits) {
    if (!first && options.oneline !== true) await out.line();
    first = false;
    for (const line of text(commit)) await out.line(line);
  }
}

async function drawGraph(
  session: Session,
  commits: AsyncIterable<Commit>,
  text: (commit: Commit) => string[],
  blankBetween: boolean,
): Promise<undefined> {
  const { out } = session;
  const graph = new GraphRenderer((lane, piece) => out.paint.lane(lane, piece));
  let first = true;
  for await (const commit of commits) {
    const block = graph.next(commit, blankBetween && !first);
    first = false;
    for (const line of besideGraph(block, text(commit))) await out.line(line.trimEnd());
  }
}
