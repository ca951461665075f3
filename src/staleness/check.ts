import { setMaxListeners } from "node:events";
import pLimit from "p-limit";
import { AgstateError } from "../core/errors.js";
import { hasOwn } from "../core/json.js";
import { quoteForMessage } from "../core/names.js";
import { type Asking, ask } from "./ask.js";
import { TIME_OVER } from "./in-time.js";
import { RESOURCES_MAX } from "./resource.js";
import type {
  CheckedResource,
  Checker,
  Checkers,
  CheckFunction,
  Observation,
  Resource,
} from "./types.js";
import { DEFAULT_SKEW_MS, judge } from "./verdict.js";

/** The bounds of a check, where a caller does not say otherwise. */
export const CHECK_DEFAULTS = {
  timeoutMs: 10_000,
  totalMs: 60_000,
  retries: 2,
  concurrency: 50,
  skewMs: DEFAULT_SKEW_MS,
} as const;

/** The widest bounds that a caller may set; timers hold no longer time. */
export const CHECK_BOUNDS: Readonly<
  Record<keyof typeof CHECK_DEFAULTS, readonly [least: number, most: number]>
> = {
  timeoutMs: [1, 2 ** 31 - 1],
  totalMs: [1, 2 ** 31 - 1],
  retries: [0, 100],
  concurrency: [1, 1000],
  skewMs: [0, Number.MAX_SAFE_INTEGER],
};

/** How many are asked about at once, how long, and how often. */
export interface CheckBounds {
  /** For one attempt at one resource, in milliseconds; default 10 seconds. */
  readonly timeoutMs?: number;
  /** For the whole check, in milliseconds; default 60 seconds. What is not known by then is `unknown`. */
  readonly totalMs?: number;
  /** How often a resource is asked about again where that may help; default twice. */
  readonly retries?: number;
  /** How many attempts are under way at once; default 50. */
  readonly concurrency?: number;
  /** By how much clocks may differ, in milliseconds; default 5 minutes. */
  readonly skewMs?: number;
}

export interface CheckOptions extends CheckBounds {
  readonly checkers: Checkers;
  /** Milliseconds since the Unix epoch; default the clock. */
  readonly now?: () => number;
  /** Ends the check at once, which then throws its reason. */
  readonly signal?: AbortSignal | undefined;
  /** Is told of each as soon as it is known. */
  readonly onChecked?: (checked: CheckedResource, index: number) => void;
}

/**
 * Asks what has become of resources, and judges each; in the order in which they are given.
 *
 * All are asked in parallel, within bounds and in time. Resources of one type, id and version are asked about once: what is
 * found of one holds for all. A checker that fails, or does not look at its signal, costs its own resources their
 * verdict, and holds nothing up.
 *
 * @throws AgstateError `INVALID_ARGUMENT`, `LIMIT_EXCEEDED`; the reason of `signal` once that aborts
 */
export async function checkResources(
  resources: readonly Resource[],
  options: CheckOptions,
): Promise<CheckedResource[]> {
  const { checkers, now = Date.now, signal, onChecked } = options;
  const { timeoutMs, totalMs, retries, concurrency, skewMs } = boundsOf(options);
  if (resources.length > RESOURCES_MAX) {
    throw new AgstateError(
      "LIMIT_EXCEEDED",
      `${resources.length} resources are given; at most ${RESOURCES_MAX} are checked at once`,
      { field: "resources", count: resources.length, limit: RESOURCES_MAX },
    );
  }
  signal?.throwIfAborted();
  const over = new AbortController();
  // Each attempt and each pause listens, and no more than there may be of them.
  setMaxListeners(0, over.signal);
  const follow = () => over.abort(signal?.reason);
  signal?.addEventListener("abort", follow, { once: true });
  const timer = setTimeout(() => over.abort(TIME_OVER), totalMs);
  const end = performance.now() + totalMs;
  const leftMs = () => end - performance.now();
  const limited = pLimit(concurrency);
  const asking: Asking = {
    over: over.signal,
    leftMs,
    timeoutMs,
    retries,
    now,
    skewMs,
    limited,
  };
  const observe = onceEach((resource: Resource) => {
    const checker = checkerOf(resource, checkers);
    return checker === undefined ? noChecker(resource, checkers) : ask(resource, checker, asking);
  });
  try {
    return await Promise.all(
      resources.map(async (resource, i) => {
        const found = resource.tolerance === "ignore" ? NOT_ASKED : await observe(resource);
        const checker = checkerOf(resource, checkers);
        const checked = judge(resource, found, checker, { now: now(), skewMs });
        onChecked?.(checked, i);
        return checked;
      }),
    );
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", follow);
    // What goes on in spite of an error that ended the check.
    over.abort(TIME_OVER);
  }
}

const NOT_ASKED: Observation = { kind: "unknown", why: "not asked" };

/** Of one type, id and version the first asks, and all others wait for what it finds. */
function onceEach(
  observe: (resource: Resource) => Observation | Promise<Observation>,
): (resource: Resource) => Promise<Observation> {
  const asked = new Map<string, Promise<Observation>>();
  return (resource) => {
    const { type, id, version } = resource;
    const key = JSON.stringify([type, id, version]);
    const known = asked.get(key) ?? Promise.resolve(observe(resource));
    asked.set(key, known);
    return known;
  };
}

function checkerOf({ type }: Resource, checkers: Checkers): Checker | CheckFunction | undefined {
  return hasOwn(checkers, type) ? checkers[type] : undefined;
}

function noChecker({ type }: Resource, checkers: Checkers): Observation {
  const known = Object.keys(checkers).join(", ") || "none";
  return {
    kind: "unknown",
    why: `there is no checker of type ${quoteForMessage(type)}; given are ${known}`,
  };
}

function boundsOf(given: CheckBounds): Required<CheckBounds> {
  const bounds: Record<keyof CheckBounds, number> = { ...CHECK_DEFAULTS };
  for (const [name, [least, most]] of Object.entries(CHECK_BOUNDS)) {
    const bound = name as keyof CheckBounds;
    const value = given[bound];
    if (value === undefined) continue;
    if (!Number.isSafeInteger(value) || value < least || value > most) {
      throw new AgstateError(
        "INVALID_ARGUMENT",
        `${name} is ${String(value)}; it must be a whole number from ${least} to ${most}`,
        { field: name },
      );
    }
    bounds[bound] = value;
  }
  return bounds;
}
