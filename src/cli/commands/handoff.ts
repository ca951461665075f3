import { AgstateError } from "../../core/errors.js";
import { isJsonObject } from "../../core/json.js";
import type { Fingerprints } from "../../staleness/fingerprints.js";
import { parseTolerance } from "../../staleness/tolerance.js";
import type { GivenSummary } from "../../store/handoff/summary.js";
import { checkersOf } from "../checkers.js";
import { readJson } from "../input.js";
import { shortId } from "../render/commit.js";
import { escapeLine } from "../render/escape.js";
import { handoffLines } from "../render/handoff.js";
import { resourceNameOf } from "../resource-name.js";
import type { Session } from "../session.js";

interface Options {
  readonly goal?: string;
  readonly done?: readonly string[];
  readonly open?: readonly string[];
  readonly decision?: readonly string[];
  readonly next?: string;
  readonly note?: string;
  readonly summary?: string;
  readonly resource?: readonly string[];
  readonly tolerance?: string;
  readonly forget?: readonly string[];
  readonly fingerprints?: string;
  readonly tag?: string;
  readonly author?: string;
  readonly checkers?: string;
}

/** `agstate handoff [BRANCH]`: ends a session with an envelope and a tag. */
export async function run(
  session: Session,
  args: readonly string[],
  options: Options,
): Promise<undefined> {
  const { out } = session;
  const { tolerance, fingerprints, note, tag, author } = options;
  const summary = await summaryOf(options);
  const resources = (options.resource ?? []).map(resourceNameOf);
  const forget = (options.forget ?? []).map(resourceNameOf);
  const limit = tolerance === undefined ? undefined : parseTolerance(tolerance);
  const work = fingerprints === undefined ? undefined : await readJson(fingerprints);
  const { checkers } = await checkersOf(options.checkers);
  const workflow = await session.workflow();
  const branch = await workflow.branch(args[0] ?? "canonical");
  const handoff = await branch.handoff({
    summary,
    resources,
    forget,
    checkers,
    ...(limit !== undefined && { tolerance: { resources: limit } }),
    ...(work !== undefined && { fingerprints: work as Fingerprints }),
    ...(note !== undefined && { note }),
    ...(tag !== undefined && { tag }),
    ...(author !== undefined && { author }),
  });
  if (out.json) return void (await out.value(handoff));
  const { paint } = out;
  const at = paint.id(shortId(handoff.commit));
  await out.line(
    `${paint.ref(escapeLine(branch.name))} is handed off at ${at} (${paint.tag(`tags/${handoff.tag}`)})`,
  );
  await out.line();
  for (const line of handoffLines(paint, handoff)) await out.line(line);
  await out.line();
  await out.line(
    paint.dim(`agstate resume ${escapeLine(branch.name)} --take-up goes on, and checks before.`),
  );
}

/** What options say goes before what the file says. */
async function summaryOf(options: Options): Promise<GivenSummary> {
  const { goal, done, open, decision, next, summary } = options;
  const file = summary === undefined ? {} : await readJson(summary);
  if (!isJsonObject(file)) {
    throw new AgstateError(
      "INVALID_VALUE",
      'the summary\'s file holds no JSON object such as {"goal":"...","done":["..."]}',
      { file: summary },
    );
  }
  return {
    ...file,
    ...(goal !== undefined && { goal }),
    ...(done !== undefined && { done }),
    ...(open !== undefined && { open }),
    ...(decision !== undefined && { decisions: decision }),
    ...(next !== undefined && { next }),
  };
}
