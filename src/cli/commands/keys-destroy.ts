import { AgstateError } from "../../core/errors.js";
import { escapeLine } from "../render/escape.js";
import { type Session, userName } from "../session.js";

interface Options {
  readonly reason: string;
  readonly subject?: string;
  readonly actor?: string;
  readonly yes?: boolean;
}

/** `agstate keys destroy`. */
export async function run(
  session: Session,
  _args: readonly string[],
  { reason, subject, actor, yes = false }: Options,
): Promise<undefined> {
  const { out } = session;
  const workflow = await session.workflow();
  const id = escapeLine(workflow.id);
  if (!yes) {
    const what = subject === undefined ? "every payload" : "all that this subject's key encrypts";
    throw new AgstateError(
      "INVALID_ARGUMENT",
      `this erases ${what} of ${id}, for ever and for everybody; say --yes if that is what you want`,
      { workflow: workflow.id },
    );
  }
  const destroyed = await workflow.destroyKey({
    reason,
    actor: actor ?? userName(),
    ...(subject === undefined ? {} : { subject }),
  });
  if (out.json) return void (await out.value({ workflow: workflow.id, ...destroyed }));
  const of = subject === undefined ? id : `subject ${escapeLine(subject)} of ${id}`;
  await out.line(
    destroyed.existed
      ? `Destroyed the key of ${of}.`
      : `There was no key of ${of}; none will be made.`,
  );
  if (destroyed.existed) await out.line("What it encrypted cannot be read any more.");
  const { paint } = out;
  await out.line(
    paint.dim("Processes that have the workflow open may read on until they end. A backup that"),
  );
  await out.line(paint.dim("has the key is erased when the key that wrapped it is retired, too."));
}
