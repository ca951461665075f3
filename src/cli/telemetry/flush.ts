import { connect } from "node:net";
import { complain } from "../../tracing/process.js";
import type { Provider } from "./providers.js";

/**
 * Sends what is left, and gives up when a time is over, or at once where nobody listens: the exporter itself would try again
 * for as long as it may.
 *
 * @param within in milliseconds
 * @returns whether all have ended; where not, timers and connections are left that would hold the process
 */
export async function flush(providers: readonly Provider[], within: number): Promise<boolean> {
  const cancel = new AbortController();
  const over = new Promise<false>((resolve) => {
    const timer = setTimeout(resolve, within, false);
    cancel.signal.addEventListener("abort", () => clearTimeout(timer));
  });
  const ends = providers.map(async (provider) => {
    const ended = provider.shutdown().then(
      () => true,
      () => true,
    );
    return Promise.race([ended, nobodyAt(provider.url, cancel.signal)]);
  });
  const all = await Promise.race([over, Promise.all(ends)]);
  cancel.abort();
  if (all === false) complain(`the collector did not take all within ${within} ms`);
  return all !== false && all.every(Boolean);
}

/** Resolves, to false, only if nobody takes connections there. */
function nobodyAt(url: string, signal: AbortSignal): Promise<false> {
  return new Promise((resolve) => {
    const { hostname, port, protocol } = new URL(url);
    const socket = connect({
      host: hostname.replace(/^\[(.*)\]$/, "$1"),
      port: port === "" ? (protocol === "https:" ? 443 : 80) : Number(port),
    });
    socket.unref();
    socket.once("error", ({ message }) => {
      complain(`nobody takes what is exported: ${message}`);
      resolve(false);
    });
    socket.once("connect", () => socket.destroy());
    signal.addEventListener("abort", () => socket.destroy());
  });
}
