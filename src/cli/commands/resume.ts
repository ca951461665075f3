import type { StepDetails } from "../../store/steps/list.js";
import { escapeLine } from "../render/escape.js";
import { shellWord } from "../render/shell.js";
import { plural } from "../render/sizes.js";
import { stepLines } from "../render/step.js";
import type { Session } from "../session.js";

/** `agstate resume [BRANCH]`: where a branch would go on, and which of its steps are in doubt. */
export async function run(session: Session, args: readonly string[]): Promise<undefined> {
  const { out } = session;
  const workflow = await session.workflow();
  const branch = await workflow.branch(args[0] ?? "canonical");
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
  if (out.json) {
    return void (await out.value({ branch: branch.name, nextSeq, inFlight, inDoubt, lease }));
  }
  const name = escapeLine(branch.name);
  await out.line(`${out.paint.ref(name)} goes on with step ${nextSeq}`);
  if (lease !== null) {
    const is = lease.gone ? "held the lease, and its process has ended" : "holds the lease";
    const since = lease.acquiredAt.toISOString().slice(0, 19).replace("T", " ");
    await out.line(
      out.paint.dim(`${escapeLine(lease.holder)} ${is} (token ${lease.token}, since ${since})`),
    );
  }
  if (inFlight.length === 0) return void (await out.line("No step is in doubt."));
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
}
