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
    try {
      await work();
    } finally {
      const others = process.listenerCount("SIGTERM") > 1;
      if (!others) {
        process.removeListener("SIGTERM", listener);
        process.kill(process.pid, "SIGTERM");
      }
    }
  };
  process.on("SIGTERM", listener);
  return () => process.removeListener("SIGTERM", listener);
}
