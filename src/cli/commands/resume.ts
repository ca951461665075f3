import { AgstateError } from "../../core/errors.js";
import type { StepDetails } from "../../store/steps/list.js";
import { formatDate } from "../render/commit.js";
import { cutTo } from "../render/cut.js";
import { escapeLine } from "../render/escape.js";
import { shellWord } from "../render/shell.js";
import { plural } from "../render/sizes.js";
import { stepLines } from "../render/step.js";
import type { Session } from "../session.js";
import type { ResumeOptions } from "./resume-check.js";

/** `agstate resume [BRANCH]`: where a branch would go on, which of its steps are in doubt, and what has become stale. */
export async function run(
  session: Session,
  args: readonly string[],
  options: ResumeOptions,
): Promise<undefined | number> {
  const { out } = session;
  refuseIdle(options);
  const workflow = await session.workflow();
  const branch = await workflow.branch(args[0] ?? "canonical");
  if (options.check || options.takeUp || options.list) {
    const { check, list, takeUp } = await import("./resume-check.js");
    if (options.list) return list(session, branch);
    return (options.check ? check : takeUp)(session, branch, options);
  }
  const { nextSeq, inFlight } = await branch.resumePoint();
  const inDoubt: StepDetails[] = [];
  if (inFlight.length > 0) {
    for await (const step of branch.steps({ status: "started" })) {
      if (inFlight.includes(step.number)) inDoubt.push(step);
      if (inDoubt.length === inFlight.length) break;
    }
  }
  inDoubt.reverse();
  const lease = await branch.lease();
  const handoff = await branch.handedOff();
  if (out.json) {
    const { name } = branch;
    await out.value({ branch: name, nextSeq, inFlight, inDoubt, lease, handoff });
    return undefined;
  }
  const name = escapeLine(branch.name);
  await out.line(`${out.paint.ref(name)} goes on with step ${nextSeq}`);
  if (handoff !== null) {
    const { tag, by, at } = handoff;
    await out.line(
      `Handed off by ${cutTo(escapeLine(by), 30)}, ${formatDate(at)}; no step runs before`,
    );
    await out.line(
      out.paint.dim(`  agstate resume ${name} --check      tells what has changed since,`),
    );
    await out.line(out.paint.dim(`  agstate resume ${name} --take-up    goes on, and`));
    await out.line(
      out.paint.dim(`  agstate show ${escapeLine(tag)}      tells what is to be done.`),
    );
  }
  if (lease !== null) {
    const is = lease.gone ? "held the lease, and its process has ended" : "holds the lease";
    const since = lease.acquiredAt.toISOString().slice(0, 19).replace("T", " ");
    await out.line(
      out.paint.dim(`${escapeLine(lease.holder)} ${is} (token ${lease.token}, since ${since})`),
    );
  }
  if (inFlight.length === 0) {
    await out.line("No step is in doubt.");
    return undefined;
  }
  await out.line(
    out.paint.bad(
      `${plural(inFlight.length, "step")} begun and not sealed: the effect may have happened.`,
    ),
  );
  for (const step of inDoubt) {
    await out.line("");
    for (const line of stepLines(out.paint, step)) await out.line(line);
  }
  await out.line("");
  await out.line(out.paint.dim("When you know what became of it, say so:"));
  const seal = `  agstate step seal ${inFlight[0]} ${shellWord(branch.name) ?? "BRANCH"}`;
  await out.line(out.paint.dim(`${seal} --output '{"id":1}'`));
  await out.line(out.paint.dim(`${seal} --error 'it did not happen'`));
  return undefined;
}

/** An option that would do nothing here was meant for something else. */
function refuseIdle(options: ResumeOptions): void {
  const { check = false, takeUp = false } = options;
  const idle =
    (["author", "expires", "yes"] as const).find(
      (name) => !takeUp && options[name] !== undefined,
    ) ??
    (["from", "fingerprints"] as const).find(
      (name) => !takeUp && !check && options[name] !== undefined,
    );
  if (idle === undefined) return;
  const goesWith =
    idle === "from" || idle === "fingerprints" ? "--check or --take-up" : "--take-up";
  throw new AgstateError("INVALID_ARGUMENT", `--${idle} goes with ${goesWith}`, { option: idle });
}
