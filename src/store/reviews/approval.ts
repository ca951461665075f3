import { changedPaths } from "../../reviews/binding.js";
import { statusAt } from "../../reviews/record.js";
import type { Repository } from "../repository.js";
import type { StepBranch } from "../steps/handle.js";
import { usedMeanwhile } from "./desk.js";
import { recordRefusal } from "./refusals.js";
import { boundPaths } from "./state-at.js";
import { type PreparedChange, prepareChange, readReview } from "./stored.js";

/**
 * Uses an approval up for a step that begins on top of the handle's head; to be written with the
 * step's intent, so that neither lands without the other.
 *
 * @returns null when the step has used it before, for an earlier attempt
 * @throws AgstateError `APPROVAL_NEEDED` when it does not hold any more
 */
export async function useApproval(
  repository: Repository,
  branch: StepBranch,
  id: string,
  number: number,
): Promise<PreparedChange | null> {
  const review = await readReview(repository, id);
  const { record } = review;
  const { subject } = record;
  const at = repository.context.now();
  const paths = subject.paths.map(({ path }) => path);
  const differ = changedPaths(subject, {
    paths: await boundPaths(repository, branch.loadedHead, paths),
  });
  if (subject.incarnation !== branch.incarnation) differ.push("branch");
  // Outside a run the number is what tells one step from the next.
  if (subject.place === null && subject.number !== number) differ.push("number");
  if (differ.length > 0) {
    await recordRefusal(repository, review, branch.author, `lapsed: ${differ.join(", ")} changed`);
    throw usedMeanwhile(id, differ);
  }
  if (record.status === "used" && record.use?.number === number) return null;
  const status = statusAt(record, at);
  if (status !== "approved") {
    await recordRefusal(repository, review, branch.author, `was ${status}`);
    throw usedMeanwhile(id);
  }
  return prepareChange(
    repository,
    review,
    { ...record, status: "used", use: { number, at } },
    { actor: branch.author, says: `Use the approval for step ${number}` },
  );
}
