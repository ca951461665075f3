import { recordAudit } from "../audit/tally.js";
import type { Repository } from "../repository.js";
import type { StoredReview } from "./stored.js";

/** Puts into the audit that a review kept something from happening, where no change of the review itself says so. */
export function recordRefusal(
  repository: Repository,
  { id, record }: Pick<StoredReview, "id" | "record">,
  actor: string,
  why: string,
): Promise<void> {
  const { kind, subject } = record;
  const { name, branch, action } = subject;
  return recordAudit(repository, {
    kind: "refused",
    actor,
    says: `refused: ${name} on ${branch}: review ${id} ${why}`,
    facts: { review: id, of: kind, name, branch, action, why },
  });
}
