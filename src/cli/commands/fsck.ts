import type { FsckReport } from "../../store/fsck.js";
import { EXIT } from "../exit-codes.js";
import { escapeLine } from "../render/escape.js";
import { plural } from "../render/sizes.js";
import type { Session } from "../session.js";

/** `agstate fsck`: the backend's own check, then the workflow's, or every workflow's when none is named. */
export async function run(session: Session): Promise<undefined | number> {
  const { out } = session;
  let problems = 0;
  for await (const storage of session.storages()) {
    for (const { what, detail } of await storage.checkStructure()) {
      problems++;
      if (out.json) await out.value({ kind: "structure", subject: what, detail });
      else
        await out.line(`${out.paint.bad("structure")} ${escapeLine(what)}: ${escapeLine(detail)}`);
    }
  }
  for await (const workflow of session.workflows()) {
    const report = await workflow.fsck();
    problems += report.problems.length;
    if (out.json) await out.value(report);
    else await print(session, report);
  }
  if (problems === 0) {
    if (!out.json) await out.line(out.paint.good("No problems."));
    return undefined;
  }
  if (!out.json) await out.line(out.paint.bad(`${plural(problems, "problem")}.`));
  return EXIT.damaged;
}

async function print(session: Session, report: FsckReport): Promise<void> {
  const { out } = session;
  for (const { kind, subject, detail } of report.problems) {
    await out.line(`${out.paint.bad(kind)} ${escapeLine(subject)}: ${escapeLine(detail)}`);
  }
  for (const { kind, subject, detail } of report.warnings) {
    await out.line(`${out.paint.bold(kind)} ${escapeLine(subject)}: ${escapeLine(detail)}`);
  }
  const more = [
    report.pending > 0 ? `${report.pending} pending` : "",
    report.erased > 0 ? plural(report.erased, "erased object") : "",
    report.unreachable > 0 ? plural(report.unreachable, "unreachable object") : "",
    report.payloads === undefined ? "" : payloadWords(report.payloads),
  ].filter(Boolean);
  await out.line(
    `${escapeLine(report.workflow)}: checked ${[
      plural(report.commits, "commit"),
      plural(report.objects, "object"),
      plural(report.refs, "ref"),
      plural(report.reflogEntries, "log entry", "log entries"),
      ...more,
    ].join(", ")}`,
  );
}

function payloadWords({ checked, unreached }: NonNullable<FsckReport["payloads"]>): string {
  const away = unreached.length === 0 ? "" : ` (could not reach ${unreached.join(", ")})`;
  return `${plural(checked, "payload")} in other regions${away}`;
}
