import type { Finding } from "../../core/finding.js";
import { diagnoseStore } from "../../store/diagnose.js";
import { EXIT_OF_CODE } from "../exit-codes.js";
import { WIDTH } from "../render/cut.js";
import { escapeLine } from "../render/escape.js";
import { plural } from "../render/sizes.js";
import { wrap } from "../render/wrap.js";
import type { Session } from "../session.js";

/** The columns before what a finding says: its level, and two spaces. */
const INDENT = 9;

/**
 * `agstate doctor`: what is good, what is a warning and what is wrong with what the store stands on.
 * Ends with 0 when nothing is wrong, else with the exit code of the first that is.
 */
export async function run(session: Session): Promise<undefined | number> {
  const { out } = session;
  const diagnosis = await diagnoseStore(session.storeUrl());
  const { location, findings } = diagnosis;
  const wrong = findings.filter(({ level }) => level === "wrong");
  const warnings = findings.filter(({ level }) => level === "warning");
  if (out.json) {
    await out.value({ ...diagnosis, wrong: wrong.length, warnings: warnings.length });
  } else {
    await out.line(out.paint.bold(escapeLine(location)));
    for (const finding of findings) await print(session, finding);
    const and = warnings.length === 0 ? "" : `, ${plural(warnings.length, "warning")}`;
    await out.line(
      wrong.length === 0
        ? out.paint.good(`Nothing is wrong${and}.`)
        : out.paint.bad(`${wrong.length} wrong${and}.`),
    );
  }
  const code = wrong[0]?.code;
  return code == null ? undefined : EXIT_OF_CODE[code];
}

async function print({ out }: Session, { level, what, remedy }: Finding): Promise<void> {
  const { paint } = out;
  const label = {
    good: paint.good("good".padEnd(INDENT)),
    warning: paint.tag("warning".padEnd(INDENT)),
    wrong: paint.bad("wrong".padEnd(INDENT)),
  }[level];
  const [first, ...rest] = wrap(escapeLine(what), WIDTH - INDENT);
  await out.line(`${label}${first}`);
  const more = remedy === null ? [] : wrap(`-> ${escapeLine(remedy)}`, WIDTH - INDENT);
  for (const line of [...rest, ...more]) await out.line(`${" ".repeat(INDENT)}${line}`);
}
