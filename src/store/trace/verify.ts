import { isAgstateError } from "../../core/errors.js";
import type { TraceSpan } from "../../tracing/trace-span.js";
import { checkCount } from "../read.js";
import type { Repository } from "../repository.js";
import type { Workflow } from "../workflow.js";
import { SpanBook } from "./book.js";
import { ClaimCheck } from "./check-claims.js";
import type { Claim } from "./claim.js";
import { readTracedCommits } from "./commits.js";
import { checkDuplicates } from "./duplicates.js";
import { Finder } from "./finder.js";
import { Landings } from "./landings.js";
import { OrderCheck } from "./order.js";
import { checkOwed } from "./owed.js";
import type { TraceProblem, TraceReport, VerifyTraceOptions } from "./types.js";

const TOLERANCE_MS = 1000;

/** Where workflows are: an open store, or regions. */
export interface WorkflowSource {
  workflow(id: string): Promise<Workflow>;
}

/**
 * Holds spans that agstate exported against the histories of the workflows that they name: whatever a span claims must be so in
 * the store, and a commit whose trace was sampled, and is among the spans, must have its span.
 *
 * Spans are judged on what they hold: one that is not there, or does not say something, is no fault by itself.
 *
 * @param spans such as `readTrace` gives
 * @throws AgstateError `INVALID_ARGUMENT`; `WORKFLOW_NOT_FOUND` for the workflow of the options
 */
export async function verifyTrace(
  store: WorkflowSource,
  spans: AsyncIterable<TraceSpan> | Iterable<TraceSpan>,
  options: VerifyTraceOptions = {},
): Promise<TraceReport> {
  const { workflow } = options;
  const toleranceMs = checkCount("toleranceMs", options.toleranceMs ?? TOLERANCE_MS);
  const asked = workflow === undefined ? undefined : await store.workflow(workflow);
  const finder = new Finder();
  const book = new SpanBook(finder, workflow);
  for await (const span of spans) book.add(span);
  book.checkParents(toleranceMs);
  const workflows: string[] = [];
  let checked = 0;
  let commits = 0;
  // One that is asked for may lack all of its spans.
  const ids = workflow === undefined ? [...book.claims.keys()] : [workflow];
  for (const id of ids) {
    const claims = book.claims.get(id) ?? [];
    checked += claims.length;
    const opened = asked ?? (await known(store, id));
    if (opened === undefined) unknown(id, claims, finder);
    else {
      workflows.push(id);
      commits += await checkWorkflow(opened.internals, claims, book, finder, toleranceMs);
    }
  }
  const problems = acrossWorkflows(finder.problems);
  const { notices } = finder;
  return {
    spans: book.spans,
    traces: book.traces.size,
    checked,
    workflows,
    commits,
    problems,
    notices,
  };
}

async function checkWorkflow(
  repository: Repository,
  claims: readonly Claim[],
  book: SpanBook,
  finder: Finder,
  toleranceMs: number,
): Promise<number> {
  const commits = await readTracedCommits(repository, claims, book.traces, finder);
  const landings = new Landings(repository, commits);
  await landings.prepare();
  await new ClaimCheck(repository, commits, landings, finder, toleranceMs).run(claims);
  await new OrderCheck(repository, commits, book, finder, toleranceMs).run(claims);
  checkDuplicates(claims, finder);
  checkOwed(repository.workflow, claims, commits, book, finder);
  return commits.facts.size + commits.unnamed.length;
}

async function known(store: WorkflowSource, id: string): Promise<Workflow | undefined> {
  try {
    return await store.workflow(id);
  } catch (error) {
    if (isAgstateError(error, "WORKFLOW_NOT_FOUND", "INVALID_NAME")) return undefined;
    throw error;
  }
}

function unknown(workflow: string, claims: readonly Claim[], finder: Finder): void {
  const landed = claims.filter(({ of, success }) => of === "commit" && success === true);
  const [first] = landed;
  if (first === undefined) return;
  finder.problem("success-without-commit", {
    workflow,
    traceId: first.traceId,
    spanId: first.spanId,
    detail: `spans say that ${landed.length === 1 ? "a commit" : `${landed.length} commits`} of it landed, this span first, and the store has no such workflow`,
    remedy:
      "if it is kept in another store, verify it there, and name with -w what is to be verified here",
  });
}

/** Makes one of two: a commit that a span claims for one workflow, and that lacks its span in another. */
function acrossWorkflows(problems: readonly TraceProblem[]): TraceProblem[] {
  const lacking = new Map<string, TraceProblem>();
  for (const one of problems)
    if (one.kind === "commit-without-span" && one.commit) lacking.set(one.commit, one);
  const moved = new Set<TraceProblem>();
  const result = problems.map((one): TraceProblem => {
    const other = one.commit === null ? undefined : lacking.get(one.commit);
    if (one.kind !== "success-without-commit" || other === undefined) return one;
    moved.add(other);
    return {
      ...one,
      kind: "wrong-workflow",
      detail: `it says workflow ${one.workflow}, and the commit is one of ${other.workflow}`,
      remedy: "the span was changed: compare it with agstate show",
    };
  });
  return result.filter((one) => !moved.has(one));
}
