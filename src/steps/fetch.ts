import { AgstateError } from "../core/errors.js";
import { quoteForMessage } from "../core/names.js";
import { httpReliance } from "./http-reliance.js";
import type { ReliedOn, ToolCall } from "./spec.js";

const HEADER = "Idempotency-Key";

/** How much is kept of the body of an answer that is an error, in bytes, and shown of it, in characters. */
const BODY_MAX_BYTES = 8192;
const BODY_SHOWN_LENGTH = 200;

/** A request, as `fetch` takes it. */
export interface IdempotentRequest extends RequestInit {
  /** What sends it; default the global `fetch`. */
  readonly fetch?: typeof fetch;
  /**
   * What may become of what a GET reads until the work is taken up again, as of `relyOn`; false: the step does not rely
   * on it. Default: as whoever hands the work off says.
   */
  readonly relyOn?: false | NonNullable<ReliedOn["tolerance"]>;
}

/** An answer of a service that does not say that it did what it was asked for. */
export class HttpError extends Error {
  override readonly name = "HttpError";
  /** `HTTP_` and the status; a step that failed by it has the same code, live and on replay. */
  readonly code: `HTTP_${number}`;

  constructor(
    readonly method: string,
    /** Without its query, which may hold credentials. */
    readonly url: string,
    readonly status: number,
    readonly headers: Headers,
    /** The first 8,192 bytes of the answer's body, as text. */
    readonly body: string,
  ) {
    const said = body === "" ? "" : `: ${quoted(body)}`;
    super(`${method} ${url} was answered with ${status}${redirected(status, headers)}${said}`);
    this.code = `HTTP_${status}`;
  }
}

/**
 * Sends a step's request with its idempotency key, and answers as `fetch` does, save for what would
 * make the step log untrue.
 *
 * The header holds the bare key, as `agstate step show` does and as services document it that honour
 * the header: to many of them quotes would be two more characters of the key, or of a wrong one. The
 * draft standard (draft-ietf-httpapi-idempotency-key-header) has a quoted string instead: for a
 * service that holds to it, give the header yourself, as `"${key}"` in double quotes, and it is sent
 * so. Calls without a key, reads and inference, are sent as they are.
 *
 * An answer other than 2xx is an `HttpError`, so that what was refused is not sealed as done, and
 * `retry` tries it again: also 409, by which services say that the first request with this key is
 * still under way. A 5xx may come after the effect: code that catches it for good takes it for undone,
 * while a run that ends by it tries the step again with the same key. Redirects of a request with a
 * key are not followed unless it says `redirect: "follow"`: they may turn a POST into a GET, which does
 * nothing and is answered with 200.
 *
 * What a GET reads, the step relies on (`call.relyOn`): its URL, without what may be a secret in it, and the version that the
 * answer says it is of.
 *
 * The request ends with the call's `signal`, and with its own. Make it inside the tool: a body that
 * is a stream, or a `Request`, can be sent only once.
 *
 * @throws HttpError; AgstateError `INVALID_ARGUMENT` when it has another key; what `fetch` throws
 */
export async function idempotentFetch(
  call: Pick<ToolCall, "key" | "signal"> & Partial<Pick<ToolCall, "relyOn">>,
  input: string | URL | Request,
  { fetch: send = fetch, relyOn, ...init }: IdempotentRequest = {},
): Promise<Response> {
  const request = input instanceof Request ? input : undefined;
  const own = init.signal === undefined ? request?.signal : init.signal;
  const signal = own == null ? call.signal : AbortSignal.any([call.signal, own]);
  const response = await send(input, { ...init, ...keyed(call.key, init, request), signal });
  const method = (init.method ?? request?.method ?? "GET").toUpperCase();
  if (response.ok) {
    const read = method === "GET" && relyOn !== false && call.relyOn !== undefined;
    const reliance = read
      ? httpReliance(request?.url ?? String(input), response.headers, Date.now())
      : null;
    if (reliance !== null) {
      await call.relyOn?.({ ...reliance, ...(relyOn && { tolerance: relyOn }) });
    }
    return response;
  }
  const { origin, pathname } = new URL(request?.url ?? String(input));
  const body = await bodyOf(response);
  throw new HttpError(method, `${origin}${pathname}`, response.status, response.headers, body);
}

/** What a request with a key has besides what it was given. */
function keyed(key: string | null, init: RequestInit, request?: Request): RequestInit {
  if (key === null) return {};
  const headers = new Headers(init.headers ?? request?.headers);
  const given = headers.get(HEADER);
  if (given === null) headers.set(HEADER, key);
  else if (given !== key && given !== `"${key}"`) {
    throw new AgstateError(
      "INVALID_ARGUMENT",
      `the request has the ${HEADER} ${quoteForMessage(given)}, and the step has ${key}; leave the header out: with another key, what happens twice would not be known as such`,
      { given, key },
    );
  }
  return { headers, redirect: init.redirect ?? "manual" };
}

/** The beginning of a body; what cannot be read of it is left out. */
async function bodyOf({ body }: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let left = BODY_MAX_BYTES;
  try {
    // Leaving the loop gives the connection free.
    for await (const chunk of body ?? []) {
      text += decoder.decode(chunk.subarray(0, left), { stream: true });
      left -= chunk.length;
      if (left <= 0) break;
    }
  } catch {
    // The status says enough.
  }
  return text;
}

function quoted(body: string): string {
  const line = body.trim().replace(/\s+/g, " ");
  return line.length <= BODY_SHOWN_LENGTH ? line : `${line.slice(0, BODY_SHOWN_LENGTH)}...`;
}

function redirected(status: number, headers: Headers): string {
  const to = headers.get("Location");
  if (to === null || status < 300 || status > 399) return "";
  return `, a redirect to ${to.split(/[?#]/)[0]} (redirect: "follow" would follow it)`;
}
