import { AgstateError } from "../../core/errors.js";
import type { RetentionOptions, RetentionReport } from "../../store/retention/types.js";
import type { Workflow } from "../../store/workflow.js";
import { graceMsOf } from "../duration.js";
import { retentionLines } from "../render/retention.js";
import { type Session, userName } from "../session.js";
import { run as compact } from "./compact.js";

interface Options {
  readonly payload?: string;
  readonly history?: string;
  readonly grace?: string;
  readonly all?: boolean;
  readonly compact?: boolean;
  readonly actor?: string;
}

/** `agstate retention plan` and `apply`: of the named workflow, the only one, or, with `--all`, every one that has a policy. */
export function runAs(dryRun: boolean) {
  return async (
    session: Session,
    _args: readonly string[],
    options: Options,
  ): Promise<undefined> => {
    const { out } = session;
    const { payload, history, grace } = options;
    const given = payload !== undefined || history !== undefined;
    const asked: RetentionOptions = {
      ...(given && { policy: { ...(payload && { payload }), ...(history && { history }) } }),
      ...(grace !== undefined && { graceMs: graceMsOf(grace) }),
      ...(dryRun ? {} : { actor: options.actor ?? userName() }),
    };
    let some = 0;
    let over = false;
    for await (const workflow of workflowsOf(session, options)) {
      if (options.all === true && !given && workflow.info.retentionPolicy === null) continue;
      some++;
      const report = await (dryRun
        ? workflow.planRetention(asked)
        : workflow.applyRetention(asked));
      over ||= isAnyOver(report);
      if (out.json) await out.value(report);
      else for (const line of retentionLines(report)) await out.line(line);
    }
    if (some === 0) {
      throw new AgstateError(
        "INVALID_ARGUMENT",
        "no workflow declares a retention policy; give periods with --payload and --history",
      );
    }
    if (dryRun && over && !out.json) {
      await out.line(out.paint.dim("Nothing was changed: agstate retention apply does so."));
    }
    if (options.compact === true) await compact(session);
    return undefined;
  };
}

async function* workflowsOf(
  session: Session,
  { all }: Options,
): AsyncGenerator<Workflow, void, undefined> {
  if (all === true) yield* session.workflows();
  else yield await session.workflow();
}

function isAnyOver({ payload, history }: RetentionReport): boolean {
  return (payload !== null && payload.bytes > 0) || (history !== null && history.commits > 0);
}
