/** The code by which shells and Kubernetes tell of an end by SIGTERM. */
const ENDED_BY_SIGTERM = 128 + 15;

/**
 * Has something done when the process is told to end, and lets it end by the signal then: unless others listen for it, to
 * whom it is left when. A signal that comes meanwhile is passed over, as those who pass signals on often send them twice.
 *
 * @returns what stops listening
 */
export function onSigterm(work: () => Promise<void>): () => void {
  let busy = false;
  const listener = async () => {
    if (busy) return;
    busy = true;
    // Asked now: one that listens once does so no more when the work is done.
    const others = process.listenerCount("SIGTERM") > 1;
    try {
      await work();
    } finally {
      if (!others) {
        process.removeListener("SIGTERM", listener);
        process.kill(process.pid, "SIGTERM");
        // From the first process of a container the kernel keeps signals that it does not listen for.
        if (process.pid === 1) process.exit(ENDED_BY_SIGTERM);
      }
    }
  };
  process.prependListener("SIGTERM", listener);
  return () => process.removeListener("SIGTERM", listener);
}
