import { AgstateError } from "../../core/errors.js";
import type { WriteBatch } from "../port.js";

/** @throws AgstateError `INVALID_ARGUMENT` when a batch moves a ref twice */
export function checkDistinctRefs({ moves }: WriteBatch): void {
  if (moves.length < 2) return;
  const refs = moves.map((move) => move.ref);
  if (new Set(refs).size === refs.length) return;
  throw new AgstateError("INVALID_ARGUMENT", "a batch moves one ref twice; send two batches", {
    refs,
  });
}

/** Bytes of a batch's bodies. */
export function sizeOf(batch: WriteBatch): number {
  let bytes = 0;
  for (const { body } of batch.objects) bytes += body.length;
  for (const { commits } of batch.moves) for (const { body } of commits) bytes += body.length;
  for (const { body } of batch.pending ?? []) bytes += body.length;
  return bytes;
}
