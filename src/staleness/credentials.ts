import { AgstateError } from "../core/errors.js";
import { quoteForMessage } from "../core/names.js";

/** Headers that hold secrets, and the only place that they are sent to. */
export interface CredentialScope {
  /** A URL: they go to its origin alone, and there to its path and what lies below it. */
  readonly base: string;
  readonly headers: Readonly<Record<string, string>>;
}

const HEADER_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;
const HEADER_VALUE = /^[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?$/;

/** Headers that say how a request is sent, not who sends it. */
const NOT_OURS =
  /^(?:host|connection|keep-alive|content-length|transfer-encoding|te|trailer|upgrade|expect|proxy-.*)$/i;

/** What servers may take for a step out of a path, or for a second look at it, and URL's own rules do not. */
const AMBIGUOUS = /%(?:2e|2f|5c|25|00)|(?:^|\/)\.{1,2}(?:;|$|\/)|\/\//i;

/**
 * Checks credentials as a caller gives them.
 *
 * @throws AgstateError `INVALID_ARGUMENT`, without any value of a header
 */
export function checkCredentials(given: readonly CredentialScope[]): readonly CredentialScope[] {
  return given.map(({ base, headers }) => {
    const url = parseBase(base, "the base URL of credentials");
    for (const [name, value] of Object.entries(headers)) {
      const what = `the header ${quoteForMessage(name)} of the credentials for ${url.origin}`;
      if (!HEADER_NAME.test(name) || NOT_OURS.test(name)) {
        throw invalid(`${what} cannot be sent; name one such as Authorization`);
      }
      if (typeof value !== "string" || !HEADER_VALUE.test(value)) {
        throw invalid(
          `${what} has a value that no header can have: it is empty, begins or ends with a space, or holds a line break or a character beyond Latin-1`,
        );
      }
    }
    // In small letters, so that none is sent beside one that all requests have.
    const sent = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
    return { base: url.href, headers: Object.fromEntries(sent) };
  });
}

/**
 * Reads the URL that an API, or whatever credentials are for, lies below.
 *
 * @param what how the message names it
 * @returns it without the slashes that its path ends with
 * @throws AgstateError `INVALID_ARGUMENT`
 */
export function parseBase(base: string, what: string): URL {
  const url = typeof base === "string" && URL.canParse(base) ? new URL(base) : null;
  // What is wrong with it may be a password in it.
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw invalid(`${what} is no URL of http or https`);
  }
  if (url.username !== "" || url.password !== "") {
    throw invalid(`${what} holds a user or a password; give them as credentials`);
  }
  if (url.search !== "" || url.hash !== "" || AMBIGUOUS.test(url.pathname.replace(/\/+$/, ""))) {
    throw invalid(
      `${what} has a query, a fragment, or a path with encoded dots, slashes or percent signs; give scheme, host and a plain path`,
    );
  }
  url.pathname = url.pathname.replace(/\/+$/, "");
  return url;
}

/**
 * The credentials for a URL: of those whose base it lies at or below, the ones with the longest.
 *
 * Paths are compared by segments after URL's own normalisation. A path that a server may read in another way than it is
 * written, such as one with an encoded slash, lies below nothing.
 */
export function credentialsFor(
  url: URL,
  scopes: readonly CredentialScope[],
): CredentialScope | undefined {
  if (AMBIGUOUS.test(url.pathname)) return undefined;
  return scopes
    .filter(({ base }) => liesBelow(url, new URL(base)))
    .sort((one, other) => other.base.length - one.base.length)[0];
}

function liesBelow(url: URL, base: URL): boolean {
  if (url.origin !== base.origin) return false;
  const path = base.pathname.replace(/\/$/, "");
  return url.pathname === path || url.pathname.startsWith(`${path}/`);
}

function invalid(message: string): AgstateError {
  return new AgstateError("INVALID_ARGUMENT", message);
}
