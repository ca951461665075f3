/** The reason of a signal that aborts since time is over. */
export const TIME_OVER = Symbol("time is over");

/**
 * Does something in time. The signal that it is given aborts when the time is over, with `TIME_OVER`, or when its
 * parent does; and from then on nobody waits for it, so that work that does not look at its signal holds nothing up.
 *
 * @throws the signal's reason once it aborts, whatever the work makes of that
 */
export async function inTime<Output>(
  timeMs: number,
  parent: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<Output>,
): Promise<Output> {
  parent?.throwIfAborted();
  const controller = new AbortController();
  const { signal } = controller;
  // Listens before the work can, so that the reason comes before an error that the work makes of it.
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
  const follow = () => controller.abort(parent?.reason);
  parent?.addEventListener("abort", follow, { once: true });
  const timer = setTimeout(() => controller.abort(TIME_OVER), timeMs);
  try {
    return await Promise.race([aborted, work(signal)]);
  } finally {
    clearTimeout(timer);
    parent?.removeEventListener("abort", follow);
  }
}

/**
 * Waits.
 *
 * @throws the signal's reason as soon as it aborts
 */
export async function pause(timeMs: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, timeMs);
    signal.addEventListener("abort", stop, { once: true });
  });
}
