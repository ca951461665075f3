import { lookup as systemLookup } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import type { Agent, Dispatcher } from "undici";
import { VERSION } from "../core/version.js";
import { type CredentialScope, credentialsFor } from "./credentials.js";
import { type AllowList, allowList, bareHost, targetOf } from "./egress-allowed.js";
import { discard, readBody } from "./egress-body.js";
import { loadUndici } from "./undici.js";

/** How many redirects are followed. */
const REDIRECTS_MAX = 5;
/** Largest body that is read where a request does not say otherwise, in bytes, as it comes and decoded. */
export const BODY_MAX_BYTES = 4 * 1024 * 1024;
/** Largest headers of an answer, in bytes. */
const HEADERS_MAX_BYTES = 64 * 1024;
/** How long a connection may take to stand, in milliseconds; a request's own signal may end it sooner. */
const CONNECT_TIMEOUT_MS = 10_000;
/** How long a connection is kept that nobody uses, in milliseconds. */
const IDLE_TIMEOUT_MS = 4_000;
const CONNECTIONS_DEFAULT = 50;

const REDIRECTS = new Set([301, 302, 303, 307, 308]);

/** Something that must not be asked. The message says why, in words that hold no secret. */
export class EgressRefused extends Error {
  override readonly name = "EgressRefused";
}

export interface EgressOptions {
  /** Hosts, `host:port`, addresses and ranges that may be asked though their addresses are not public. */
  readonly allow?: readonly string[];
  /** How many connections to one origin there are at most; default 50. */
  readonly concurrency?: number;
  /** Resolves names; default is the system's. */
  readonly lookup?: LookupFunction;
  /** Certificates that are trusted instead of the usual ones, in PEM. */
  readonly ca?: string;
}

export interface EgressRequest {
  readonly url: string;
  /** Default `GET`. */
  readonly method?: "GET" | "HEAD";
  /** None that is a secret: these go wherever a redirect leads. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Checked ones (`checkCredentials`); they go to what lies below their base, and nowhere else. */
  readonly credentials?: readonly CredentialScope[];
  readonly signal: AbortSignal;
  /** Largest body that is read, in bytes; default `BODY_MAX_BYTES`. */
  readonly maxBytes?: number;
}

export interface EgressAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** Where it came from, after redirects. */
  readonly url: string;
  readonly finalOrigin: string;
  /**
   * Reads the body, once.
   *
   * @throws EgressUnusable when it is too large, ends too early, or is encoded in a way that is not known
   */
  body(): Promise<Buffer>;
  /** Lets the body go; for answers whose headers are enough. */
  discard(): void;
}

/** The one way in which something that an envelope names is asked for. */
export interface Egress {
  /**
   * Asks for a URL, and follows redirects.
   *
   * @throws EgressRefused what must not be asked; what the connection failed by; the signal's reason
   */
  request(request: EgressRequest): Promise<EgressAnswer>;
  /** Ends all connections, and requests that are under way; a later request opens new ones. */
  close(): Promise<void>;
}

/**
 * Makes an HTTP client for URLs that somebody else wrote.
 *
 * Only public addresses are asked, save those that the allow-list names: every address that a name resolves to is checked
 * when the connection is made, by the connection itself, so that a name cannot lead elsewhere after it was checked.
 * Redirects are followed one by one, each checked as the first was. No proxy of the environment is used.
 *
 * @throws AgstateError `INVALID_ARGUMENT` for an allow-list that has something else than hosts
 */
export function createEgress(options: EgressOptions = {}): Egress {
  const allowed = allowList(options.allow);
  let agent: Agent | null = null;
  return {
    async request(request) {
      agent ??= createAgent(options, allowed);
      return await follow(request, agent, allowed);
    },
    async close() {
      const ended = agent;
      agent = null;
      await ended?.destroy();
    },
  };
}

function createAgent(
  { concurrency = CONNECTIONS_DEFAULT, lookup, ca }: EgressOptions,
  allowed: AllowList,
): Agent {
  const { Agent, buildConnector } = loadUndici();
  const common = {
    timeout: CONNECT_TIMEOUT_MS,
    // A session would go to another server than it came from, where a name moved.
    maxCachedSessions: 0,
    ...(ca === undefined ? {} : { ca }),
  };
  return new Agent({
    connections: concurrency,
    pipelining: 1,
    maxHeaderSize: HEADERS_MAX_BYTES,
    // The request's signal ends it.
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: IDLE_TIMEOUT_MS,
    keepAliveMaxTimeout: IDLE_TIMEOUT_MS,
    connect(about, callback) {
      const url = new URL(`${about.protocol}//${about.host ?? about.hostname}`);
      const guarded = guardedLookup(lookup ?? (systemLookup as LookupFunction), url, allowed);
      buildConnector({ ...common, lookup: guarded })(about, callback);
    },
  });
}

/** Resolves a name, and fails if even one of its addresses must not be asked. */
function guardedLookup(resolve: LookupFunction, url: URL, allowed: AllowList): LookupFunction {
  const target = targetOf(url);
  return (hostname, options, callback) => {
    resolve(hostname, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, "", 0);
      const addresses = found as unknown as { address: string; family: number }[];
      for (const { address } of addresses) {
        const refusal = allowed.refusal(target, address);
        if (refusal !== null) return callback(refused(url, refusal), "", 0);
      }
      const [first] = addresses;
      if (first === undefined) return callback(refused(url, "its name has no address"), "", 0);
      if (options.all) return callback(null, addresses);
      callback(null, first.address, first.family);
    });
  };
}

async function follow(
  request: EgressRequest,
  dispatcher: Agent,
  allowed: AllowList,
): Promise<EgressAnswer> {
  const { method = "GET", signal, credentials = [], maxBytes = BODY_MAX_BYTES } = request;
  if (!URL.canParse(request.url)) throw new EgressRefused("what is asked for is no URL");
  let url = new URL(request.url);
  let scopes = credentials;
  for (let redirects = 0; ; redirects++) {
    const secrets = allowedCredentials(url, scopes, allowed);
    signal.throwIfAborted();
    const answer = await dispatcher.request({
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      method,
      signal,
      headers: {
        ...request.headers,
        "user-agent": `agstate/${VERSION}`,
        "accept-encoding": "identity",
        "cache-control": "no-cache",
        ...secrets,
      },
    });
    const headers = headersOf(answer);
    const location = headers.get("location");
    if (!REDIRECTS.has(answer.statusCode) || location === null) {
      return {
        status: answer.statusCode,
        headers,
        url: url.href,
        finalOrigin: url.origin,
        body: () => readBody(answer.body, headers, maxBytes),
        discard: () => discard(answer.body),
      };
    }
    discard(answer.body);
    if (redirects === REDIRECTS_MAX) {
      throw refused(url, `it redirects more than ${REDIRECTS_MAX} times`);
    }
    const next = redirectOf(url, location);
    // Whoever sent us elsewhere must not get them back to a place of his own choice, either.
    if (next.origin !== url.origin) scopes = [];
    url = next;
  }
}

/** The headers that go to a URL besides those of everyone, once the URL itself may be asked. */
function allowedCredentials(
  url: URL,
  scopes: readonly CredentialScope[],
  allowed: AllowList,
): Readonly<Record<string, string>> {
  if (!/^https?:$/.test(url.protocol)) {
    throw new EgressRefused("only URLs of http and https are asked");
  }
  if (url.username !== "" || url.password !== "") {
    throw refused(
      url,
      "it holds a user or a password; credentials are configured, not written in URLs",
    );
  }
  const target = targetOf(url);
  // A connection to an address resolves nothing.
  if (isIP(target.host) !== 0) {
    const refusal = allowed.refusal(target, target.host);
    if (refusal !== null) throw refused(url, refusal);
  }
  const scope = credentialsFor(url, scopes);
  if (scope === undefined) return {};
  if (url.protocol === "http:" && !allowed.names(target)) {
    throw refused(
      url,
      "credentials would go to it over plain http; use https, or name the host in the allow-list",
    );
  }
  return scope.headers;
}

function redirectOf(from: URL, location: string): URL {
  if (!URL.canParse(location, from.href)) throw refused(from, "it redirects to what is no URL");
  const to = new URL(location, from);
  if (from.protocol === "https:" && to.protocol === "http:") {
    throw refused(from, "it redirects from https to http");
  }
  return to;
}

/** Names the host, and no more of a URL: its path and query may hold secrets. */
function refused(url: URL, why: string): EgressRefused {
  return new EgressRefused(`${bareHost(url)} is not asked: ${why}`);
}

function headersOf({ headers }: Dispatcher.ResponseData): Headers {
  const read = new Headers();
  for (const [name, values] of Object.entries(headers)) {
    for (const value of [values ?? []].flat()) read.append(name, value);
  }
  return read;
}
