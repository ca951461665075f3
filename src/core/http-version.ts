import { formatHttpDate, parseHttpDate } from "./http-date.js";

/**
 * An entity tag as RFC 9110, section 8.8.3, has it, of printable ASCII: other bytes come as other characters through some
 * clients, and would not be sent back as they came.
 */
const ENTITY_TAG = /^(?<weak>W\/)?(?<opaque>"[\x21\x23-\x7e]*")$/;

/** Longest entity tag that is a version, in bytes. */
const ENTITY_TAG_MAX_BYTES = 4000;

/** What a version token of HTTP says. */
export type HttpVersion =
  | {
      readonly kind: "etag";
      /** As it is in the header, also with `W/`. */
      readonly tag: string;
      /** What two tags have in common that are weakly the same: the tag without its `W/`. */
      readonly opaque: string;
    }
  | {
      readonly kind: "last-modified";
      /** Milliseconds since the Unix epoch. */
      readonly at: number;
    };

/** The headers of an answer, as `fetch` has them. */
export interface AnswerHeaders {
  get(name: string): string | null;
}

/**
 * The version that an answer of HTTP says it is of, as a token: `etag:` with its ETag, else `last-modified:` with that date.
 *
 * It is null when the answer has neither in a form that can be compared later, and when its Last-Modified tells too little: a
 * date of the future, or one that is less than a second before the answer, since what is changed again within that second
 * keeps the date.
 *
 * @param now milliseconds since the Unix epoch, for an answer without a Date
 */
export function httpVersionOf(
  headers: AnswerHeaders,
  { now }: { readonly now: number },
): string | null {
  const tag = entityTagOf(headers);
  if (tag !== null) return httpVersionToken(tag);
  const modified = lastModifiedOf(headers, now);
  if (modified === null) return null;
  return dateOf(headers, now) - modified.at < 1000 ? null : httpVersionToken(modified);
}

/** Reads a version token of HTTP; null when it is none. */
export function parseHttpVersion(token: string, now: number): HttpVersion | null {
  const colon = token.indexOf(":");
  const value = token.slice(colon + 1);
  switch (token.slice(0, colon)) {
    case "etag":
      return entityTag(value);
    case "last-modified":
      return httpDateVersion(value, now);
    default:
      return null;
  }
}

/** Writes a version token of HTTP. */
export function httpVersionToken(version: HttpVersion): string {
  return version.kind === "etag"
    ? `etag:${version.tag}`
    : `last-modified:${formatHttpDate(version.at)}`;
}

/** The ETag of an answer; null when it has none that is well-formed. */
export function entityTagOf(headers: AnswerHeaders): HttpVersion | null {
  return entityTag(headers.get("etag") ?? "");
}

/** The Last-Modified of an answer; null when it has none that is a date. */
export function lastModifiedOf(
  headers: AnswerHeaders,
  now: number,
): Extract<HttpVersion, { kind: "last-modified" }> | null {
  return httpDateVersion(headers.get("last-modified") ?? "", now);
}

/** When an answer was made: by its own Date where that is one, else by our clock. */
export function dateOf(headers: AnswerHeaders, now: number): number {
  return parseHttpDate(headers.get("date") ?? "", now) ?? now;
}

function entityTag(text: string): HttpVersion | null {
  const opaque = text.length <= ENTITY_TAG_MAX_BYTES && ENTITY_TAG.exec(text)?.groups?.opaque;
  return opaque ? { kind: "etag", tag: text, opaque } : null;
}

function httpDateVersion(
  text: string,
  now: number,
): Extract<HttpVersion, { kind: "last-modified" }> | null {
  const at = parseHttpDate(text, now);
  return at === null ? null : { kind: "last-modified", at };
}
