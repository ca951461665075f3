import { isAgstateError } from "../core/errors.js";
import type { UpdateBatch, WriteWatch } from "../refs/ref-store.js";
import { EVENTS_REF } from "./audit/record.js";
import { recordAudit } from "./audit/tally.js";
import type { Repository } from "./repository.js";

/**
 * Keeps a workflow that has parts in other regions from being written by whoever cannot send them there, and puts into the
 * audit that a write was refused because of where its data belongs.
 */
export function refusals(repository: Repository): WriteWatch {
  return {
    before: (batch) => {
      if (!isAudit(batch)) repository.placed?.refuseUnlessWritable();
    },
    failed: async (batch, error) => {
      if (!isAudit(batch)) await recordRefused(repository, error);
    },
  };
}

/** Puts into the audit what was refused because of where data belongs: where, of which region, and never what. */
export async function recordRefused(repository: Repository, error: unknown): Promise<void> {
  if (!isAgstateError(error, "RESIDENCY_REFUSED", "REGION_REFUSED")) return;
  const { code } = error;
  const { where = null, region = null, into = null, payload = null, by } = error.details as Facts;
  await recordAudit(repository, {
    kind: "refused",
    actor: by ?? "agstate",
    says: `refused: ${code}${region === null ? "" : `: of region ${region}`}`,
    facts: { code, where, region, into, payload },
  });
}

type Facts = { readonly [Name in "where" | "region" | "into" | "payload" | "by"]?: string | null };

/** The audit's own record, which tells of refusals and must not be one. */
function isAudit({ updates }: UpdateBatch): boolean {
  return updates.length > 0 && updates.every(({ ref }) => ref === EVENTS_REF);
}
