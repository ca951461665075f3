import { AgstateError } from "../core/errors.js";
import type { JsonValue } from "../core/json.js";
import type { StepCall, StepGrant, StepHooks } from "../core/step-hooks.js";
import type { AskedReview, ReviewDesk, ReviewRequest } from "../reviews/desk.js";
import type { ReviewRecord } from "../reviews/record.js";
import type { Governance, Verdict } from "./policy.js";

/**
 * Holds the rules at every step of a branch.
 *
 * `before` throws `STEP_DENIED` where a rule or a person refuses, which is on record as a review, and
 * `APPROVAL_NEEDED` with the review's id until a person has let this very step run.
 *
 * @param nextNumber the number that the branch's next step takes, which tells steps outside a run apart
 */
export function gate(
  governance: Governance,
  desk: ReviewDesk,
  nextNumber: () => number,
): StepHooks {
  return {
    classify: (name, declared) => {
      const { action = declared ?? "execute", decision } = governance.verdictOn(name);
      // What a person must let happen is on record, a read as well, or it would have to be let on every replay.
      return { action, recorded: decision === "approve" };
    },
    before: async (call) => {
      if (call.internal) return undefined;
      const verdict = governance.verdictOn(call.name);
      if (verdict.decision === "allow") return undefined;
      const number = call.number ?? (call.place === null ? nextNumber() : null);
      if (verdict.decision === "deny") {
        const { id } = await desk.deny(request("denial", call, number, verdict));
        throw denied(call, id, reasonOf(verdict));
      }
      return approved(desk, call, request("approval", call, number, verdict));
    },
  };
}

async function approved(
  desk: ReviewDesk,
  call: StepCall,
  request: ReviewRequest,
): Promise<StepGrant> {
  const review = await desk.ask(request, (record) => isOf(record, call));
  const { id, status, record } = review;
  if (status === "discarded") {
    const { by = "somebody", reason = "" } = record.decision ?? {};
    throw denied(call, id, `discarded by ${by}${reason === "" ? "" : `: ${reason}`}`);
  }
  if (status === "open") throw needed(call, review);
  // Where an intent lands first, the approval is used up with it.
  const hasIntent = call.action === "write" || call.action === "execute";
  if (status === "approved" && !hasIntent) await desk.use(review);
  return { approval: id };
}

/** Whether an approval was used for the step that is now tried once more. */
function isOf({ use }: ReviewRecord, { number, attempt }: StepCall): boolean {
  if (use === null || attempt === 1) return false;
  return use.number === null || use.number === number;
}

function request(
  kind: string,
  call: StepCall,
  number: number | null,
  verdict: Verdict,
): ReviewRequest {
  const { name, action, input, place, key } = call;
  return {
    kind,
    subject: {
      number: place === null ? number : null,
      place,
      name,
      action,
      ...(input === undefined ? {} : { input: input as JsonValue }),
      key,
      attempt: null,
    },
    paths: verdict.paths,
    expiresAfterMs: verdict.expiresAfterMs,
    reason: reasonOf(verdict),
  };
}

function reasonOf({ reason, rule }: Verdict): string {
  return reason ?? (rule === null ? "no rule names this tool" : `by the rule for ${rule}`);
}

function denied({ name, branch }: StepCall, review: string, why: string): AgstateError {
  return new AgstateError(
    "STEP_DENIED",
    `${name} may not run on ${branch}: ${why}; agstate review show ${review} tells of it`,
    { branch, name, review },
  );
}

function needed({ name, branch }: StepCall, { id, record }: AskedReview): AgstateError {
  return new AgstateError(
    "APPROVAL_NEEDED",
    `${name} waits on ${branch} for a person: agstate review approve ${id} lets it run, then run again`,
    { branch, name, review: id, expiresAt: record.expiresAt },
  );
}
