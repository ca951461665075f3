import { isAgstateError } from "../../core/errors.js";
import type { ObjectId } from "../../core/ids.js";
import type { Repository } from "../repository.js";
import type { TombstoneNote } from "./bury.js";
import { kindOf, targetDigests, writeErasure } from "./record.js";
import type { CheckedRequest } from "./request.js";
import type { EraseReport, ErasureReceipt } from "./types.js";

/** An erasure under way. */
export interface Erasure extends CheckedRequest {
  readonly id: string;
  readonly at: number;
  /** For the digests of the target. */
  readonly salt: string;
}

/** Puts into the audit what is asked for, or what came of it. */
export async function recordErasure(
  repository: Repository,
  erasure: Erasure,
  status: "requested" | "done" | "partial" | "failed",
  objects: readonly ObjectId[],
  report?: EraseReport,
  error?: unknown,
): Promise<void> {
  const { id, salt, by, reason, target } = erasure;
  await writeErasure(repository, {
    id,
    kind: kindOf(target),
    status,
    salt,
    targets: targetDigests(target, salt),
    by,
    reason,
    at: repository.context.now(),
    objects,
    ...(report && {
      erased: {
        heads: report.heads.length,
        objects: report.objects,
        inline: report.inline,
        pending: report.pending,
        bytes: report.bytes,
        held: report.held.reduce((sum, hold) => sum + hold.objects, 0),
        holds: report.held.map(({ hold }) => hold).join(" "),
        residue: report.residue.length,
        unread: report.unread,
      },
    }),
    ...(error !== undefined && { error: isAgstateError(error) ? error.code : "INTERNAL" }),
  });
}

export function receiptOf(
  { workflow }: Repository,
  { id, target, by, reason, at, keepKeys }: Erasure,
  objects: readonly ObjectId[],
): ErasureReceipt {
  return {
    agstate: "erasure-receipt",
    v: 1,
    workflow,
    id,
    target,
    by,
    reason,
    at: new Date(at),
    keepKeys,
    objects: [...new Set(objects)].sort(),
  };
}

export function noteOf({ id, by, at, reason }: Erasure): TombstoneNote {
  return { reason: "erased", record: id, by, at, why: reason };
}
