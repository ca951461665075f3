import { AgstateError } from "../../core/errors.js";
import { branchRef, parseAgentRef } from "../../refs/names.js";
import type { Ref } from "../../store/types.js";
import type { Workflow } from "../../store/workflow.js";
import { EXIT } from "../exit-codes.js";
import { columns } from "../render/columns.js";
import { shortId, subjectOf } from "../render/commit.js";
import { escapeLine } from "../render/escape.js";
import type { Session } from "../session.js";
import { discardAgreed } from "../side-effects.js";

interface Options {
  readonly delete?: boolean;
  readonly merged?: string | true;
  readonly expected?: string;
  readonly yes?: boolean;
}

/** `agstate branch`: lists, creates and deletes. */
export async function run(
  session: Session,
  args: readonly string[],
  options: Options,
): Promise<undefined | number> {
  const workflow = await session.workflow();
  const [name, start] = args;
  if (name === undefined) {
    if (options.delete === true)
      throw new AgstateError("INVALID_ARGUMENT", "name the branch to delete");
    return list(session, workflow, options.merged);
  }
  if (options.delete === true) return remove(session, workflow, name, options);
  return create(session, workflow, name, start);
}

async function list(
  session: Session,
  workflow: Workflow,
  merged: string | true | undefined,
): Promise<undefined> {
  const { out } = session;
  const refs =
    merged === undefined
      ? await workflow.refs("refs/heads/")
      : await workflow.merged(merged === true ? "canonical" : merged);
  if (out.json) {
    for (const ref of refs) await out.value(ref);
    return;
  }
  const rows: string[][] = [];
  for (const ref of refs) {
    const head = await workflow.commitAt(ref.name);
    rows.push([paintName(session, ref), out.paint.id(shortId(ref.id)), subjectOf(head.message)]);
  }
  for (const line of columns(rows)) await out.line(line);
}

function paintName(session: Session, ref: Ref): string {
  const { paint } = session.out;
  const name = escapeLine(ref.shortName);
  return ref.shortName === "canonical" ? paint.canonical(name) : paint.ref(name);
}

async function create(
  session: Session,
  workflow: Workflow,
  name: string,
  start: string | undefined,
): Promise<undefined> {
  const parts = parseAgentRef(branchRef(name));
  if (parts === null) throw new AgstateError("REF_EXISTS", "canonical exists in every workflow");
  const branch = await workflow.branch({ ...parts, from: start ?? "canonical", create: "always" });
  const { out } = session;
  if (out.json) return void (await out.value({ name: branch.ref, id: branch.head.id }));
  await out.line(`Created ${escapeLine(branch.name)} at ${out.paint.id(shortId(branch.head.id))}.`);
}

async function remove(
  session: Session,
  workflow: Workflow,
  name: string,
  options: Options,
): Promise<undefined | number> {
  const { out } = session;
  const deleted = await discardAgreed(
    session,
    { yes: options.yes === true, left: "no other branch has" },
    (how) =>
      workflow.deleteBranch(name, {
        ...(options.expected === undefined ? {} : { expected: options.expected }),
        ...how,
      }),
  );
  if (deleted === null) return EXIT.negative;
  const { id, sideEffects } = deleted;
  if (out.json) {
    return void (await out.value({ deleted: branchRef(name), id, sideEffects }));
  }
  await out.line(
    `Deleted ${escapeLine(name)}, which was at ${out.paint.id(shortId(id))}; its reflog keeps the history.`,
  );
  return undefined;
}
