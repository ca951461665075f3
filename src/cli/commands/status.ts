import { columns } from "../render/columns.js";
import { ago, shortId, subjectOf } from "../render/commit.js";
import { cutTo } from "../render/cut.js";
import { escapeLine } from "../render/escape.js";
import { plural } from "../render/sizes.js";
import type { Session } from "../session.js";
import { overviewLines, overviewOf } from "./stored-merge.js";

/** `agstate status`: where the store is, and how far each branch is from canonical. */
export async function run(session: Session): Promise<undefined> {
  const { out } = session;
  const workflow = await session.workflow();
  const description = await workflow.internals.storage.describe();
  const branches = [];
  for (const ref of await workflow.refs("refs/heads/")) {
    const head = await workflow.commitAt(ref.name);
    const { ahead, behind } = await workflow.aheadBehind(ref.name, "canonical");
    branches.push({ ref, head, ahead, behind });
  }
  const merges = await overviewOf(workflow);
  const handoffs = await workflow.handoffs();
  if (out.json) {
    return void (await out.value({
      store: description,
      workflow: workflow.id,
      branches: branches.map(({ ref, head, ahead, behind }) => ({
        name: ref.shortName,
        id: ref.id,
        ahead,
        behind,
        date: head.date,
        nextStep: head.nextStep,
        inFlight: head.inFlight,
        handedOff: handoffs.find((each) => each.ref.name === ref.name)?.handoff.tag ?? null,
      })),
      merges: merges.map(({ info, open, problem }) => ({ ...info, open, problem })),
    }));
  }
  const { paint } = out;
  await out.line(`Store     ${escapeLine(description.location)} (${description.backend})`);
  await out.line(`Workflow  ${paint.bold(escapeLine(workflow.id))}`);
  await out.line();
  const rows = branches.map(({ ref, head, ahead, behind }) => {
    const canonical = ref.shortName === "canonical";
    const name = escapeLine(ref.shortName);
    return [
      canonical ? paint.canonical(name) : paint.ref(name),
      paint.id(shortId(ref.id)),
      canonical ? "" : distance(ahead, behind),
      paint.dim(ago(head.date)),
      subjectOf(head.message),
    ];
  });
  for (const line of columns(rows)) await out.line(line);
  const open = branches.filter(({ head }) => head.inFlight.length > 0);
  for (const { ref, head } of open) {
    await out.line();
    await out.line(
      paint.bad(`${escapeLine(ref.shortName)} has open steps: ${head.inFlight.join(", ")}`),
    );
  }
  for (const { ref, handoff } of handoffs) {
    const by = `by ${cutTo(escapeLine(handoff.by), 24)}, ${ago(handoff.at)}`;
    await out.line();
    await out.line(`${paint.ref(cutTo(escapeLine(ref.shortName), 34))} was handed off ${by}`);
    const name = escapeLine(ref.shortName);
    await out.line(paint.dim(`  agstate resume ${name} --check tells what has changed since`));
  }
  if (merges.length === 0) return;
  await out.line();
  await out.line(`${plural(merges.length, "merge waits", "merges wait")} to be finished:`);
  for (const line of overviewLines(session, merges)) await out.line(`  ${line}`);
  await out.line(paint.dim("agstate conflicts NAME shows what is open"));
}

function distance(ahead: number, behind: number): string {
  if (ahead === 0 && behind === 0) return "even";
  return [ahead > 0 ? `+${ahead}` : "", behind > 0 ? `-${behind}` : ""].filter(Boolean).join(" ");
}
