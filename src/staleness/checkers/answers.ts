import { parseHttpDate } from "../../core/http-date.js";
import { dateOf } from "../../core/http-version.js";
import { EgressRefused } from "../egress.js";
import { EgressUnusable } from "../egress-body.js";
import type { Observation } from "../types.js";

type Unknown = Extract<Observation, { kind: "unknown" }>;

/** Statuses after which asking again may help at once. */
const PASSING = new Set([408, 425, 429, 500, 502, 503, 504]);

/** Failures of a connection that come again however often one asks. */
const LASTING = /^(?:UND_ERR_HEADERS_OVERFLOW|ENOTFOUND|ERR_TLS_.*|CERT_.*|.*_CERT.*|HPE_.*)$/;

/** Longest wait that is taken from an answer, in milliseconds. */
const WAIT_MAX_MS = 24 * 60 * 60 * 1000;

/** What nobody can tell, and why. */
export function unknown(why: string, more: Omit<Unknown, "kind" | "why"> = {}): Unknown {
  return { kind: "unknown", why, ...more };
}

/**
 * What an answer's status and headers settle by themselves; null for a success of the origin's own, whose content tells.
 *
 * @param now milliseconds since the Unix epoch, for an answer without a Date
 */
export function settledBy(status: number, headers: Headers, now: number): Observation | null {
  const cached = fromCache(headers);
  if (cached !== null) return unknown(cached);
  if (status === 404 || status === 410) {
    return { kind: "gone", why: `answered with ${status}: it is not there, or not to be seen` };
  }
  if (status === 200 || status === 204 || status === 304) return null;
  const why = `answered with ${status}${meaning(status)}`;
  if (!PASSING.has(status)) return unknown(why);
  const waitMs = retryAfter(headers, now);
  return unknown(why, { again: true, ...(waitMs === null ? {} : { waitMs }) });
}

/** Why an answer tells what some cache remembers and not what the origin has; null when it is the origin's. */
function fromCache(headers: Headers): string | null {
  const age = headers.get("age");
  if (age !== null && !/^0+$/.test(age)) {
    return /^\d{1,10}$/.test(age) ? `a cache's answer, ${age} s old` : "a cache's answer";
  }
  return /(?:^|,)\s*11[01](?:\s|$)/.test(headers.get("warning") ?? "")
    ? "a cache's answer, which it calls stale"
    : null;
}

function meaning(status: number): string {
  if (status === 401) return ": it needs credentials that it knows";
  if (status === 403) return ": these credentials may not see it";
  if (status === 429) return ": asked too often";
  return "";
}

/** How long an answer says to wait, in milliseconds; null when it does not say. */
export function retryAfter(headers: Headers, now: number): number | null {
  const given = headers.get("retry-after") ?? "";
  if (/^\d{1,10}$/.test(given)) return boundedWait(Number(given) * 1000);
  const at = parseHttpDate(given, now);
  return at === null ? null : boundedWait(at - dateOf(headers, now));
}

/** A wait that is over is 0, and none is longer than a day. */
export function boundedWait(waitMs: number): number {
  return Math.min(Math.max(waitMs, 0), WAIT_MAX_MS);
}

/** What a request that failed says of the resource; an error of programming is thrown on. */
export function failed(error: unknown, signal: AbortSignal): Observation {
  if (error instanceof EgressRefused || error instanceof EgressUnusable) {
    return unknown(error.message);
  }
  if (signal.aborted) return unknown("no whole answer in time", { again: true });
  // Its message may hold what was asked for.
  const { code } = error as { code?: unknown };
  if (typeof code !== "string" || !/^[A-Z][A-Z0-9_]*$/.test(code)) throw error;
  return unknown(`not to be reached (${code})`, LASTING.test(code) ? {} : { again: true });
}
