import { AgstateError } from "../../core/errors.js";
import { EXIT } from "../exit-codes.js";
import { readInput } from "../input.js";
import { escapeLine } from "../render/escape.js";
import { plural } from "../render/sizes.js";
import type { Session } from "../session.js";

interface Options {
  readonly checkpoint?: string;
  readonly publicKey?: string;
}

/** `agstate audit verify`. */
export async function run(
  session: Session,
  _args: readonly string[],
  { checkpoint, publicKey }: Options,
): Promise<undefined | number> {
  const { out } = session;
  if ((checkpoint === undefined) !== (publicKey === undefined)) {
    throw new AgstateError(
      "INVALID_ARGUMENT",
      "a checkpoint proves nothing without the signer's public key; give both --checkpoint and --public-key",
    );
  }
  const signed =
    checkpoint === undefined || publicKey === undefined
      ? {}
      : {
          checkpoint: {
            document: await readInput(checkpoint),
            publicKey: (await readInput(publicKey)).toString(),
          },
        };
  const report = await (await session.workflow()).verifyAudit(signed);
  const { problems, notices } = report;
  if (out.json) await out.value(report);
  else {
    for (const { kind, subject, detail } of problems) {
      await out.line(`${out.paint.bad(kind)} ${escapeLine(subject)}: ${escapeLine(detail)}`);
    }
    for (const { kind, subject, detail } of notices) {
      await out.line(`${out.paint.dim(kind)} ${escapeLine(subject)}: ${escapeLine(detail)}`);
    }
    const counts = [
      plural(report.refs, "ref"),
      plural(report.entries, "log entry", "log entries"),
      plural(report.commits, "commit"),
    ];
    const against = report.checkpoint;
    const held =
      against === null
        ? ""
        : `; held against ${plural(against.refs, "ref")} signed ${against.date.toISOString().slice(0, 19)}Z`;
    await out.line(`${escapeLine(report.workflow)}: checked ${counts.join(", ")}${held}`);
    await out.line(
      problems.length === 0
        ? out.paint.good("No problems.")
        : out.paint.bad(`${plural(problems.length, "problem")}.`),
    );
    if (against === null && problems.length === 0) {
      await out.line(
        out.paint.dim("Only a signed checkpoint shows a chain that was computed anew."),
      );
    }
  }
  return problems.length === 0 ? undefined : EXIT.damaged;
}
