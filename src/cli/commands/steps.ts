import { AgstateError } from "../../core/errors.js";
import { quoteForMessage } from "../../core/names.js";
import { STEP_ACTIONS } from "../../objects/commit.js";
import type { StepFilter } from "../../store/steps/list.js";
import { columns } from "../render/columns.js";
import { escapeLine } from "../render/escape.js";
import { statusText } from "../render/step.js";
import type { Session } from "../session.js";

interface Options {
  readonly name?: string;
  readonly action?: string;
  readonly status?: string;
  readonly since?: string;
  readonly maxCount?: number;
}

/** `agstate steps [BRANCH]`: the steps of a branch, newest first. */
export async function run(
  session: Session,
  args: readonly string[],
  options: Options,
): Promise<undefined> {
  const { out } = session;
  const workflow = await session.workflow();
  const branch = await workflow.branch(args[0] ?? "canonical");
  const rows: string[][] = [];
  for await (const step of branch.steps(filterOf(options))) {
    if (out.json) await out.value(step);
    else {
      rows.push([
        String(step.number).padStart(4),
        statusText(out.paint, step.status),
        step.action,
        out.paint.dim(step.startedAt.toISOString().slice(0, 19).replace("T", " ")),
        step.attempt > 1 ? `x${step.attempt}` : "",
        escapeLine(step.name),
      ]);
    }
  }
  if (out.json) return;
  if (rows.length === 0) await out.line(out.paint.dim(`No steps on ${escapeLine(branch.name)}.`));
  for (const line of columns(rows)) await out.line(line);
}

function filterOf({ name, action, status, since, maxCount }: Options): StepFilter {
  return {
    ...(name === undefined ? {} : { name }),
    ...(action === undefined ? {} : { action: oneOf("action", action, STEP_ACTIONS) }),
    ...(status === undefined
      ? {}
      : { status: oneOf("status", status, ["started", "completed", "failed"] as const) }),
    ...(since === undefined ? {} : { since: timeOf(since) }),
    ...(maxCount === undefined ? {} : { limit: maxCount }),
  };
}

function oneOf<T extends string>(what: string, text: string, known: readonly T[]): T {
  if ((known as readonly string[]).includes(text)) return text as T;
  throw new AgstateError(
    "INVALID_ARGUMENT",
    `${what} is ${quoteForMessage(text)}; there are ${known.join(", ")}`,
    { [what]: text },
  );
}

function timeOf(text: string): Date {
  const date = new Date(text);
  if (Number.isFinite(date.getTime())) return date;
  throw new AgstateError(
    "INVALID_ARGUMENT",
    `${quoteForMessage(text)} is no time; give one such as 2030-01-31 or 2030-01-31T12:00Z`,
    { since: text },
  );
}
