import { isAgstateError } from "../../core/errors.js";
import type { Repository } from "../repository.js";
import { recordAudit } from "./tally.js";

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
