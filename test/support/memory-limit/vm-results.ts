import { constants } from "node:os";
import type { StepEnd } from "../memory-limit.js";

/** How a step ended in the virtual machine. */
export interface VmEnd extends StepEnd {
  /** Whether it was ended because its time was over. */
  readonly late: boolean;
}

/** A shell tells of a signal by a code above this. */
const SIGNALLED = 128;

function signalOf(code: number): string | null {
  const number = code - SIGNALLED;
  return Object.entries(constants.signals).find(([, value]) => value === number)?.[0] ?? null;
}

/** Reads what `vm-steps.sh` tells of the steps that came to their end. */
export function readResults(text: string): VmEnd[] {
  const parts = text.replaceAll("\r", "").matchAll(/^@step (\d+)\n(.*?)^@end \1$/gms);
  return [...parts].map(([, , part = ""]) => {
    const [head = "", stdout = "", stderr = ""] = part.split(/^@std(?:out|err)$/m);
    const values = new Map(
      head.split("\n").map((line) => line.split(" ", 2) as [string, string | undefined]),
    );
    const decode = (base64: string) => Buffer.from(base64, "base64").toString("utf8");
    const code = Number(values.get("code"));
    const signal = signalOf(code);
    const peak = values.get("peakBytes") || null;
    return {
      code: signal === null ? code : null,
      signal,
      stdout: decode(stdout),
      stderr: decode(stderr),
      oomKills: Number(values.get("oomKills")),
      peakBytes: peak === null ? null : Number(peak),
      late: values.has("late"),
    };
  });
}
