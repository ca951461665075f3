import pRetry from "p-retry";

const DEFAULT_PAUSE_MS = 200;

/** How often something is tried, as a step's spec says it. */
export interface Retrying {
  readonly retry?: { readonly attempts: number; readonly pauseMs?: number };
  readonly signal?: AbortSignal;
}

/**
 * Does something, again after an error that may pass, with pauses that double.
 *
 * @param again whether an error is one after which it is tried again; `undefined` of one that is not
 *   what was tried's own, and goes through as it is
 */
export async function retrying<Output>(
  once: () => Promise<Output>,
  { retry, signal }: Retrying,
  again: (error: unknown) => boolean | undefined,
): Promise<Output> {
  // Most steps are tried once, which needs no bookkeeping.
  if (retry === undefined && signal === undefined) return once();
  const done = await pRetry(
    async () => {
      try {
        return { output: await once() };
      } catch (error) {
        if (again(error) !== undefined) throw error;
        return { error };
      }
    },
    {
      retries: retry?.attempts ?? 0,
      minTimeout: retry?.pauseMs ?? DEFAULT_PAUSE_MS,
      randomize: true,
      shouldRetry: ({ error }) => again(error) === true,
      ...(signal === undefined ? {} : { signal }),
    },
  );
  if ("error" in done) throw done.error;
  return done.output;
}
