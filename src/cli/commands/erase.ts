import { AgstateError } from "../../core/errors.js";
import type { EraseReport, EraseRequest, ErasureReceipt } from "../../store/erase/types.js";
import { EXIT } from "../exit-codes.js";
import { beginReceipt, readReceipt, writeReceipt } from "../receipt-file.js";
import { cutTo, WIDTH } from "../render/cut.js";
import { escapeLine } from "../render/escape.js";
import { formatBytes, plural } from "../render/sizes.js";
import { type Session, userName } from "../session.js";

interface Options {
  readonly path?: string[];
  readonly subject?: string;
  readonly all?: boolean;
  readonly reason?: string;
  readonly by?: string;
  readonly dryRun?: boolean;
  readonly keepKeys?: boolean;
  readonly receipt?: string;
  readonly again?: boolean;
  readonly compact?: boolean;
  readonly yes?: boolean;
}

/** How many lines of each list are shown. */
const SHOWN_MAX = 20;

/** `agstate erase --path P... | --subject S | --all`, or by a receipt. */
export async function run(
  session: Session,
  _args: readonly string[],
  options: Options,
): Promise<undefined | number> {
  const { out } = session;
  const request = requestOf(options);
  const workflow = await session.workflow();
  const { receipt } = options;
  if (receipt !== undefined && options.again !== true && options.dryRun !== true) {
    beginReceipt(receipt);
  }
  const before = options.again === true ? readReceipt(receipt as string).objects : [];
  const keep = async (given: ErasureReceipt) => {
    const objects = [...new Set([...before, ...given.objects])].sort();
    writeReceipt(receipt as string, { ...given, objects });
  };
  const report = await workflow.erase({
    ...request,
    ...(receipt === undefined || options.dryRun === true ? {} : { onReceipt: keep }),
  });
  const compacted =
    options.compact === true && !report.dryRun
      ? await workflow.internals.storage.compact()
      : undefined;
  if (out.json) await out.value({ ...report, ...(compacted && { compacted }) });
  else {
    await print(session, report);
    if (compacted !== undefined) {
      const { bytesBefore, bytesAfter } = compacted;
      await out.line(
        `Compacted: ${formatBytes(bytesBefore)} before, ${formatBytes(bytesAfter)} after.`,
      );
    }
    await advise(session, report, compacted !== undefined);
  }
  return report.status === "partial" && !report.dryRun ? EXIT.conflict : undefined;
}

/** @throws AgstateError `INVALID_ARGUMENT` */
function requestOf(options: Options): EraseRequest {
  const { path, subject, all, receipt, again } = options;
  const dryRun = options.dryRun ?? false;
  if (again === true) {
    if (receipt === undefined)
      throw usage("--again goes by a receipt; name it with --receipt FILE");
    const { target, by, reason, keepKeys, objects } = readReceipt(receipt);
    return {
      ...target,
      by: options.by ?? by,
      reason: options.reason ?? reason,
      keepKeys: options.keepKeys ?? keepKeys,
      objects,
      dryRun,
    };
  }
  if (options.reason === undefined) {
    throw usage("say why, with --reason TEXT; it stays in the audit and in tombstones");
  }
  const who = {
    by: options.by ?? userName(),
    reason: options.reason,
    keepKeys: options.keepKeys ?? false,
    dryRun,
  };
  if (path !== undefined) return { paths: path, ...who };
  if (subject !== undefined) return { subject, ...who };
  if (all !== true) throw usage("say what to erase: --path PATH, --subject TAG or --all");
  if (!dryRun && options.yes !== true) {
    throw usage("--all erases everything that the workflow holds, for good; add --yes to do so");
  }
  return { workflow: true, ...who };
}

function usage(message: string): AgstateError {
  return new AgstateError("INVALID_ARGUMENT", message);
}

async function print({ out }: Session, report: EraseReport): Promise<void> {
  const { paint } = out;
  const { dryRun, heads, held, shared, residue, exports } = report;
  const counts = [
    plural(report.objects, "object"),
    plural(report.inline, "copy", "copies"),
    plural(report.pending, "pending row"),
  ].join(", ");
  const verb = dryRun ? "Would erase" : "Erased";
  await out.line(`${verb} ${counts} (${formatBytes(report.bytes)}).`);
  if (!dryRun) await out.line(paint.dim(`The audit and tombstones name it ${report.id}.`));
  const list = async (title: string, lines: readonly string[]) => {
    if (lines.length === 0) return;
    await out.line(title);
    for (const line of lines.slice(0, SHOWN_MAX)) await out.line(cutTo(`  ${line}`, WIDTH));
    if (lines.length > SHOWN_MAX) await out.line(`  and ${lines.length - SHOWN_MAX} more`);
  };
  await list(
    "New heads:",
    heads.map(({ ref, new: id }) => `${paint.id(id.slice(0, 10))} ${escapeLine(ref)}`),
  );
  await list(
    "Kept by holds, and not erased:",
    held.map(({ hold, objects }) => `${plural(objects, "object")} by ${escapeLine(hold)}`),
  );
  await list(
    "Short values that a branch has elsewhere, and that stay:",
    shared.map((id) => id.slice(0, 10)),
  );
  await list(
    "It is still here, where it cannot be changed:",
    residue.map(({ kind, at }) => `${kind} ${escapeLine(at)}`),
  );
  for (const remedy of new Set(residue.map((each) => each.remedy))) {
    await out.line(paint.dim(cutTo(`  ${remedy}`, WIDTH)));
  }
  if (report.unread > 0) {
    await out.line(
      `${plural(report.unread, "object")} could not be looked into: keys or regions are not at hand.`,
    );
  }
  await list(
    "Copies that were made outside of the store:",
    exports.map(({ directory, at }) => `${at.toISOString().slice(0, 10)} ${escapeLine(directory)}`),
  );
}

/** What is left for the operator to do. */
async function advise(
  { out }: Session,
  { dryRun, status, kind }: EraseReport,
  compacted: boolean,
): Promise<void> {
  const { paint } = out;
  if (dryRun) {
    return out.line(paint.dim("Nothing was changed: leave out --dry-run to do so."));
  }
  if (!compacted) {
    await out.line(
      paint.dim("Run agstate compact, so that the store's files are free of it as well."),
    );
  }
  if (status === "done") return out.line(paint.good("Nothing of it was found any more."));
  await out.line(
    paint.bad("Something is left.") +
      (kind === "workflow" ? "" : " Run it again when holds are released."),
  );
}
