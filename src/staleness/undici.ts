import { createRequire } from "node:module";

type Undici = typeof import("undici");

let loaded: Undici | undefined;

/**
 * Loads undici when something is asked for the first time: most that use agstate never ask.
 *
 * Where nobody has set the dispatcher of the global `fetch`, the package sets its own as it is loaded, and the host's `fetch`
 * would go through another version of undici than Node's from then on. Looking at `Headers` makes Node set its own first.
 */
export function loadUndici(): Undici {
  if (loaded === undefined) {
    void globalThis.Headers;
    loaded = createRequire(import.meta.url)("undici") as Undici;
  }
  return loaded;
}
