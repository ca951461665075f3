import {
  type AnswerHeaders,
  dateOf,
  entityTagOf,
  type HttpVersion,
  httpVersionToken,
  lastModifiedOf,
  parseHttpVersion,
} from "../../core/http-version.js";
import { type CredentialScope, checkCredentials } from "../credentials.js";
import type { Egress, EgressAnswer } from "../egress.js";
import type { CheckContext, Checker, Observation } from "../types.js";
import { DEFAULT_SKEW_MS } from "../verdict.js";
import { failed, settledBy, unknown } from "./answers.js";
import { compareHttpVersions } from "./http-compare.js";

export interface HttpCheckerOptions {
  readonly egress: Egress;
  readonly credentials?: readonly CredentialScope[];
}

/**
 * Knows resources of HTTP by their URL: what a server says of their version, by ETag or Last-Modified.
 *
 * With an ETag on record the server is asked whether it is still that one (If-None-Match). With a date it is asked for the
 * date that it has now: to If-Modified-Since many servers answer "not modified" for whatever is older than the date as well,
 * and a file that was put back from a backup would pass for the same.
 *
 * @throws AgstateError `INVALID_ARGUMENT` for credentials that cannot be sent
 */
export function httpChecker({ egress, credentials = [] }: HttpCheckerOptions): Checker {
  const checked = checkCredentials(credentials);
  return {
    async observe({ id, version }, context) {
      const then = version === null ? null : parseHttpVersion(version, context.now());
      const condition = then?.kind === "etag" ? { "if-none-match": then.tag } : {};
      const ask: Ask = (method) =>
        egress.request({
          url: id,
          method,
          headers: { accept: "*/*", ...condition },
          credentials: checked,
          signal: context.signal,
        });
      try {
        return await observeWith(ask, then, context);
      } catch (error) {
        return failed(error, context.signal);
      }
    },
    compare: compareHttpVersions,
  };
}

type Ask = (method: "GET" | "HEAD") => Promise<EgressAnswer>;

async function observeWith(
  ask: Ask,
  then: HttpVersion | null,
  context: CheckContext,
): Promise<Observation> {
  const { now } = context;
  // Where nothing has changed, the answer to a conditional GET has no body either, and one that HEAD would have got wrong.
  if (then?.kind !== "etag") {
    const head = await ask("HEAD");
    head.discard();
    if (!isMute(head, now())) return observed(head, then, context);
  }
  const answer = await ask("GET");
  answer.discard();
  return observed(answer, then, context);
}

/** Whether an answer to HEAD leaves open what GET may tell: not every server knows HEAD, or answers it in full. */
function isMute({ status, headers }: EgressAnswer, now: number): boolean {
  if (status === 405 || status === 501) return true;
  return status === 200 && entityTagOf(headers) === null && lastModifiedOf(headers, now) === null;
}

function observed(
  { status, headers }: EgressAnswer,
  then: HttpVersion | null,
  context: CheckContext,
): Observation {
  const now = context.now();
  const settled = settledBy(status, headers, now);
  if (settled !== null) return settled;
  if (status === 304) return unmodified(headers, then);
  const version = versionLike(headers, then, now);
  if (version === null) return unknown("answered without a usable ETag or Last-Modified");
  const latest = dateOf(headers, now) + (context.skewMs ?? DEFAULT_SKEW_MS);
  const isAhead = (one: HttpVersion | null) => one?.kind === "last-modified" && one.at > latest;
  if (isAhead(version)) return unknown("its Last-Modified lies in the future");
  if (isAhead(then)) return unknown("the Last-Modified on record lies in the future");
  return { kind: "version", version: httpVersionToken(version) };
}

/** Reads "not modified", which answers only the question whether it is another than ours. */
function unmodified(headers: AnswerHeaders, then: HttpVersion | null): Observation {
  if (then?.kind !== "etag") {
    return unknown("answered with 304, though it was not asked whether it changed");
  }
  if (headers.get("etag") === null) return { kind: "same" };
  const own = entityTagOf(headers);
  return own?.kind === "etag" && own.opaque === then.opaque
    ? { kind: "same" }
    : unknown("answered with 304, and with another ETag than the one on record");
}

/** The version that an answer has, of the kind that is on record where it has both. */
function versionLike(
  headers: AnswerHeaders,
  then: HttpVersion | null,
  now: number,
): HttpVersion | null {
  const tag = entityTagOf(headers);
  const modified = lastModifiedOf(headers, now);
  return then?.kind === "last-modified" ? (modified ?? tag) : (tag ?? modified);
}
