import type { Fingerprints } from "../../staleness/fingerprints.js";
import type { Branch } from "../../store/branch.js";
import type { ResumeReport } from "../../store/handoff/resume.js";
import { checkersOf } from "../checkers.js";
import { expiryMsOf } from "../duration.js";
import { EXIT } from "../exit-codes.js";
import { readJson } from "../input.js";
import { shortId } from "../render/commit.js";
import { escapeLine } from "../render/escape.js";
import { boundaryLines, freshnessLines } from "../render/freshness.js";
import type { Session } from "../session.js";
import { discardAgreed } from "../side-effects.js";

export interface ResumeOptions {
  readonly check?: boolean;
  readonly takeUp?: boolean;
  readonly list?: boolean;
  readonly from?: string;
  readonly fingerprints?: string;
  readonly author?: string;
  readonly expires?: string;
  readonly yes?: boolean;
  readonly checkers?: string;
}

/** `agstate resume BRANCH --list`: the hand-offs that it could go on from. */
export async function list(session: Session, branch: Branch): Promise<undefined> {
  const { out } = session;
  const boundaries = await branch.boundaries();
  if (out.json) {
    for (const boundary of boundaries) await out.value(boundary);
    return;
  }
  for (const line of boundaryLines(out.paint, boundaries)) await out.line(line);
  if (boundaries.length === 0) {
    await out.line(`${out.paint.ref(escapeLine(branch.name))} was never handed off.`);
  }
}

/** `agstate resume BRANCH --check`: whether what the work relies on is as it was. */
export async function check(
  session: Session,
  branch: Branch,
  options: ResumeOptions,
): Promise<number> {
  const { out } = session;
  const report = await branch.freshness(await askedWith(options));
  const code = report.verdict === "fresh" ? EXIT.ok : EXIT.negative;
  if (out.json) {
    await out.value(report);
    return code;
  }
  for (const line of freshnessLines(out.paint, report)) await out.line(line);
  if (report.handoff === null) return code;
  const how = `agstate resume ${escapeLine(branch.name)} --take-up`;
  const does = code === EXIT.ok ? "takes it up" : "asks for a review";
  await out.line();
  await out.line(out.paint.dim(`${how} ${does}.`));
  return code;
}

/** `agstate resume BRANCH --take-up`: lets steps run on it again, or asks somebody. */
export async function takeUp(
  session: Session,
  branch: Branch,
  options: ResumeOptions,
): Promise<number> {
  const { out } = session;
  const { author, expires, yes = false, from } = options;
  const how = {
    ...(await askedWith(options)),
    ...(expires !== undefined && { reviewExpiresAfterMs: expiryMsOf(expires) }),
    ...(author !== undefined && { author }),
  };
  const report =
    from === undefined
      ? await branch.resume(how)
      : await discardAgreed(session, { yes, left: "that hand-off has not" }, ({ sideEffects }) =>
          branch.resume({ ...how, sideEffects }),
        );
  if (report === null) return EXIT.negative;
  const code = report.ready ? EXIT.ok : EXIT.negative;
  if (out.json) {
    await out.value(report);
    return code;
  }
  for (const line of freshnessLines(out.paint, report)) await out.line(line);
  await out.line();
  for (const line of outcomeLines(session, branch.name, report)) await out.line(line);
  return code;
}

function outcomeLines({ out: { paint } }: Session, name: string, report: ResumeReport): string[] {
  const { ready, commit, review, earlier } = report;
  const branch = escapeLine(name);
  if (ready) {
    if (commit === null) return [`${paint.ref(branch)} may go on.`];
    return [`${paint.ref(branch)} is taken up at ${paint.id(shortId(commit.id))}.`];
  }
  const id = escapeLine(review?.id ?? "");
  if (review?.status === "discarded") {
    const { by = "", reason = "" } = review.decision ?? {};
    const why = reason === "" ? "" : `: ${escapeLine(reason)}`;
    const lines = [`${paint.bad("Discarded")} by ${escapeLine(by)}${why}`];
    if (earlier.length === 0) return [...lines, paint.dim("There is no earlier hand-off.")];
    return [
      ...lines,
      "",
      "It can go on from an earlier hand-off:",
      ...boundaryLines(paint, earlier).map((line) => `  ${line}`),
      "",
      paint.dim(`agstate resume ${branch} --take-up --from TAG goes back there.`),
    ];
  }
  return [
    `${paint.bad("Not taken up")}: review ${paint.id(id)} waits for somebody.`,
    paint.dim(`agstate review show ${id} tells what is asked.`),
  ];
}

async function askedWith({ checkers: file, fingerprints, from }: ResumeOptions) {
  return {
    ...(await checkersOf(file)),
    ...(fingerprints !== undefined && {
      fingerprints: (await readJson(fingerprints)) as Fingerprints,
    }),
    ...(from !== undefined && { from }),
  };
}
