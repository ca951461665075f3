import type { CheckpointReport } from "./emergency.js";
import { type PressureReason, shareOf } from "./reasons.js";

/** Bytes as people read them, such as `436 MiB`. */
function inMebibytes(bytes: number): string {
  const mebibytes = bytes / (1024 * 1024);
  return mebibytes < 10 ? `${mebibytes.toFixed(1)} MiB` : `${Math.round(mebibytes)} MiB`;
}

/** One reason as one phrase; names no path, as it may stand in a commit's message. */
export function describeReason(reason: PressureReason): string {
  const { kind, value, limit } = reason;
  switch (kind) {
    case "usage": {
      const of = limit === undefined ? "" : ` of ${inMebibytes(limit.limitBytes)}`;
      const what = limit?.source === "heap" ? "V8's heap" : "memory";
      const share = limit === undefined ? value : shareOf(limit);
      return `${Math.floor(share * 100)}%${of} of ${what} in use`;
    }
    case "stall":
      return `tasks waited for memory ${Math.round(value)}% of the time`;
    case "oom":
      return "the kernel ran out of memory here";
    case "cpu-stall":
      return `tasks waited for processors ${Math.round(value)}% of the time`;
    case "throttled":
      return `processors were held back in ${Math.round(value)}% of the periods`;
  }
}

/** What became of a checkpoint, on one line. */
export function describeReport({ branches, errors, safe, reason, ms }: CheckpointReport): string {
  const took = `${reason}, ${Math.round(ms)} ms`;
  const lines = branches.map(({ workflow, branch, outcome, commit, rescue, error }) => {
    const where = `${branch} of ${workflow}`;
    if (outcome === "failed") return `${where} FAILED (${error?.message ?? "unknown"})`;
    const at = rescue === undefined ? "" : ` on ${rescue}`;
    return `${where} ${outcome}${at} at ${(commit ?? "").slice(0, 12)}`;
  });
  for (const { message } of errors) lines.push(`gathered commits FAILED (${message})`);
  const all = lines.length === 0 ? "no branch is guarded" : lines.join("; ");
  return safe ? `safe point (${took}): ${all}` : `NOT everything is in the store (${took}): ${all}`;
}
