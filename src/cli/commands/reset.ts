import { quoteForMessage } from "../../core/names.js";
import { EXIT } from "../exit-codes.js";
import { commitJson, shortId, subjectOf } from "../render/commit.js";
import { cutTo } from "../render/cut.js";
import { escapeLine } from "../render/escape.js";
import { paintBranch } from "../render/merge.js";
import { plural } from "../render/sizes.js";
import type { Session } from "../session.js";
import { discardAgreed } from "../side-effects.js";

/** `agstate reset BRANCH REV`: points a branch to another commit, unless somebody moved it meanwhile. */
export async function run(
  session: Session,
  args: readonly string[],
  options: { readonly expected?: string; readonly author?: string; readonly yes?: boolean },
): Promise<undefined | number> {
  const { out } = session;
  const [name, revision] = args as [string, string];
  const workflow = await session.workflow();
  // By id, so that what is said of the way there is true.
  const branch = await workflow.branch(name);
  const old = await workflow.resolve(options.expected ?? branch.head.id);
  const commit = await workflow.commitAt(revision);
  const ref = await discardAgreed(
    session,
    { yes: options.yes === true, left: `${cutTo(escapeLine(revision), 24)} has not` },
    (how) =>
      workflow.reset(name, commit.id, {
        expected: old,
        reason: `reset: moving to ${quoteForMessage(revision)}`,
        ...(options.author === undefined ? {} : { actor: options.author }),
        ...how,
      }),
  );
  if (ref === null) return EXIT.negative;
  if (out.json) return void (await out.value({ ...ref, old, commit: commitJson(commit) }));
  const { paint } = out;
  const shown = paintBranch(paint, ref.shortName);
  const subject = cutTo(subjectOf(commit.message), 40);
  await out.line(`${shown} is now at ${paint.id(shortId(ref.id))} ${subject}`.trimEnd());
  const { behind } = await workflow.aheadBehind(ref.id, old);
  if (behind === 0) return undefined;
  const left = `It leaves ${plural(behind, "commit")} behind`;
  await out.line(
    paint.dim(`${left}; agstate reset ${escapeLine(ref.shortName)} ${shortId(old)} goes back.`),
  );
  return undefined;
}
