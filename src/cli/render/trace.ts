import type { TraceProblem, TraceReport } from "../../store/trace/types.js";
import type { Output } from "../output.js";
import { cutTo, WIDTH } from "./cut.js";
import { escapeLine } from "./escape.js";
import { plural } from "./sizes.js";
import { wrap } from "./wrap.js";

/** How much of an id is shown where there is more than one on a line. */
const SHORT_ID = 12;

const INDENT = "  ";

/** Tells of what a look at spans found, in words. */
export async function printTraceReport(out: Output, report: TraceReport): Promise<void> {
  const { problems, notices, workflows, checked } = report;
  for (const problem of problems) await printProblem(out, problem);
  for (const { kind, workflow, count, detail } of notices) {
    await out.line(
      `${out.paint.dim(kind)} ${escapeLine(workflow)}: ${plural(count, "commit")}: ${escapeLine(detail)}`,
    );
  }
  await paragraph(
    out,
    `Read ${plural(report.spans, "span")} of ${plural(report.traces, "trace")}; held ${plural(checked, "span")} of steps, commits and merges against ${plural(report.commits, "commit")} of ${workflowWords(workflows)}.`,
  );
  if (problems.length > 0) {
    return out.line(out.paint.bad(`${plural(problems.length, "problem")}.`));
  }
  await out.line(out.paint.good("No problems."));
  if (checked === 0) {
    await paragraph(
      out,
      "None of the spans tells of a step or a commit: is agstate traced, by an SDK that is registered in its process?",
    );
  }
}

async function printProblem(out: Output, problem: TraceProblem): Promise<void> {
  const { kind, workflow, commit, traceId, spanId, detail, remedy } = problem;
  const subject = commit === null ? "" : ` commit ${commit.slice(0, SHORT_ID)}`;
  const of = workflow === null ? "" : ` of ${workflow}`;
  const about = cutTo(escapeLine(`${subject}${of}`), WIDTH - kind.length);
  await out.line(`${out.paint.bad(kind)}${about}`);
  const place = [traceId && `trace ${traceId}`, spanId && `span ${spanId}`].filter(Boolean);
  if (place.length > 0) await out.line(INDENT + escapeLine(place.join(" ")));
  await paragraph(
    out,
    detail.replace(LONG_ID, (id) => id.slice(0, SHORT_ID)),
    INDENT,
  );
  await paragraph(out, `-> ${remedy}`, INDENT);
}

/** Commit ids in what a finding says; the whole ones are in its JSON. */
const LONG_ID = /\b[0-9a-f]{64}\b/g;

async function paragraph(out: Output, text: string, indent = ""): Promise<void> {
  for (const line of wrap(escapeLine(text), WIDTH - indent.length)) await out.line(indent + line);
}

function workflowWords(workflows: readonly string[]): string {
  return workflows.length === 1 ? `workflow ${workflows[0]}` : plural(workflows.length, "workflow");
}
