import { isAgstateError } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";
import type { ReviewInfo } from "../../store/reviews/review.js";
import type { Workflow } from "../../store/workflow.js";
import { columns } from "../render/columns.js";
import { formatDate } from "../render/commit.js";
import { cutTo, WIDTH } from "../render/cut.js";
import { escapeLine } from "../render/escape.js";
import type { Paint } from "../render/paint.js";
import { statusWords } from "../render/review.js";
import { stalenessLines } from "../render/staleness-review.js";
import { inlineJson, readableLines } from "../render/value.js";
import { wrap } from "../render/wrap.js";
import type { Session } from "../session.js";

const LABEL_WIDTH = 10;
const INPUT_LINES_SHOWN = 40;

/** `agstate review show ID`: what is asked, what it depends on, and what became of it. */
export async function run(session: Session, args: readonly string[]): Promise<undefined> {
  const { out } = session;
  const { paint } = out;
  const workflow = await session.workflow();
  const review = await workflow.review(args[0] as string);
  const { info } = review;
  const changed = await review.changed();
  if (out.json) return void (await out.value({ ...info, changed }));
  for (const line of columns(factsOf(paint, info))) await out.line(line);
  const { input, paths } = info.subject;
  if (info.kind === "staleness") {
    for (const line of stalenessLines(paint, info)) await out.line(line);
  } else if (input !== undefined) {
    await out.line();
    await out.line(paint.bold("Input"));
    await indented(session, input);
  }
  if (paths.length > 0) {
    await out.line();
    await out.line(paint.bold("Depends on the state at"));
    for (const { path } of paths) {
      const since = changed.includes(path) ? paint.bad("changed since") : paint.good("as it was");
      await out.line(`  ${paint.path(cutTo(escapeLine(path), 60))}  ${since}`);
      await out.line(`    ${await valueAt(workflow, info.subject.branch, path)}`);
    }
  }
  if (info.decision?.found?.happened === true && info.decision.found.output !== undefined) {
    await out.line();
    await out.line(paint.bold("What came out"));
    await indented(session, info.decision.found.output);
  }
  await out.line();
  for (const line of nextLines(info, changed)) await out.line(paint.dim(line));
}

function factsOf(paint: Paint, info: ReviewInfo): string[][] {
  const { subject, decision, use } = info;
  const room = WIDTH - LABEL_WIDTH - 2;
  const text = (value: string) => cutTo(escapeLine(value), room);
  const rows = [
    ["Review", paint.id(text(info.id))],
    ["Status", statusWords(paint, info)],
    info.kind === "staleness"
      ? ["Asks", text(subject.name)]
      : ["Step", text(`${subject.name} (${subject.action})${numbered(subject.number)}`)],
    ["Branch", paint.ref(text(subject.branch))],
    ["Asked by", text(`${info.askedBy}, ${formatDate(info.askedAt)}`)],
  ];
  if (info.reason !== "") rows.push(["Why", text(info.reason)]);
  if (subject.place !== null) {
    const { run, scope, index } = subject.place;
    rows.push(["In run", text([run, ...scope, `step ${index + 1}`].join(", "))]);
  }
  if (subject.key !== null) rows.push(["Key", text(subject.key)]);
  if (info.expiresAt !== null) rows.push(["Expires", formatDate(info.expiresAt)]);
  if (decision !== null) {
    rows.push(["Decided by", text(`${decision.by}, ${formatDate(decision.at)}`)]);
    if (decision.reason !== "") rows.push(["Reason", text(decision.reason)]);
    if (decision.found !== undefined) {
      rows.push(["Found out", decision.found.happened ? "it happened" : "it did not happen"]);
    }
  }
  if (use !== null) rows.push(["Used", `${formatDate(use.at)}${numbered(use.number)}`]);
  return rows;
}

function numbered(number: number | null): string {
  return number === null ? "" : `, step ${number}`;
}

async function indented(session: Session, value: JsonValue): Promise<void> {
  const lines = readableLines(value, WIDTH - 2);
  for (const line of lines.slice(0, INPUT_LINES_SHOWN))
    await session.out.line(`  ${line}`.trimEnd());
  if (lines.length > INPUT_LINES_SHOWN) {
    await session.out.line(session.out.paint.dim("  ...; --json shows all"));
  }
}

async function valueAt(workflow: Workflow, branch: string, path: string): Promise<string> {
  try {
    return inlineJson(await workflow.stateAt(branch, path), WIDTH - 4);
  } catch (error) {
    if (isAgstateError(error, "PATH_NOT_FOUND", "REVISION_NOT_FOUND", "REF_NOT_FOUND")) {
      return "(nothing)";
    }
    throw error;
  }
}

function nextLines({ id, kind, status }: ReviewInfo, changed: readonly string[]): string[] {
  const approve = `agstate review approve ${escapeLine(id)}`;
  const discard = `agstate review discard ${escapeLine(id)}`;
  if (status === "open" && changed.length > 0) {
    const text =
      "It cannot be approved any more, since what it depends on has changed; the agent asks anew when it runs again.";
    return wrap(text, WIDTH);
  }
  if (status === "open" && kind === "in-doubt") {
    return [
      "Find out whether it happened, and say so:",
      `  ${approve} --happened OUTPUT`,
      `  ${approve} --not-happened`,
    ];
  }
  if (status === "open") return ["Decide with one of", `  ${approve}`, `  ${discard}`];
  if (status === "approved" && kind === "staleness") {
    return ["It counts when the branch is resumed, if nothing has moved again by then."];
  }
  if (status === "approved") return ["It counts when the agent runs again."];
  return ["Nothing is to be decided here any more."];
}
