import { AgstateError } from "../../core/errors.js";
import { registry } from "../../pressure/guards.js";

/** Whether memory is short just now, as far as anybody watches. */
export function isMemoryShort(): boolean {
  const { watch } = registry;
  return watch !== undefined && watch.level !== "none";
}

/**
 * Lets a step begin, or has it wait, or refuses it, while memory is short or the process was told to end.
 *
 * @returns undefined where nothing has to be waited for
 * @throws AgstateError `STEPS_STOPPED`
 */
export function mayTakeMemory(branch: string): Promise<void> | undefined {
  return registry.watch?.stepsStopped ? untilTaken(branch) : undefined;
}

async function untilTaken(branch: string): Promise<void> {
  for (;;) {
    const { watch } = registry;
    const stopped = watch?.stepsStopped;
    if (watch === undefined || !stopped) return;
    const { reason, how } = stopped;
    if (how === "refuse") {
      const why =
        reason === "sigterm"
          ? "the process was told to end; run it again, and it goes on from here"
          : "memory is short; run it again when it is not, here or elsewhere";
      throw new AgstateError("STEPS_STOPPED", `no new steps are taken on ${branch}: ${why}`, {
        branch,
        reason,
      });
    }
    await watch.changed();
  }
}
