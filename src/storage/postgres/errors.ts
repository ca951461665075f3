import { AgstateError } from "../../core/errors.js";
import { toldError, toldMessage } from "../../core/server-error.js";

interface ServerError {
  readonly code?: string;
  readonly message?: string;
}

/** The SQLSTATE of an error, or the operating system's code; empty where there is none. */
export const codeOf = (error: unknown): string => {
  const code = (error as ServerError | null)?.code;
  return typeof code === "string" ? code : "";
};

/** No answer came in time, not even to the request to cancel. */
export class UnansweredError extends Error {
  override readonly name = "UnansweredError";

  constructor(waitedMs: number) {
    super(`no answer within ${waitedMs} ms`);
  }
}

/** The write function's own: somebody else created the same ref at the same time. */
const REF_RACE = "AG001";

/** What node-pg says when all connections of the pool stayed in use. */
const POOL_WAIT = /^timeout exceeded when trying to connect/;

/** What node-pg says, without a code, of servers that it cannot come to terms with. */
const OF_CONNECTING = /\b(?:SSL|SASL)\b/;

const messageOf = (error: unknown) => (error as ServerError | null)?.message ?? "";

function isPoolWait(error: unknown): boolean {
  return codeOf(error) === "" && POOL_WAIT.test(messageOf(error));
}

/** Whether a transaction gave way to another: it did nothing, and may do better the next time. */
function gaveWay(error: unknown): boolean {
  return ["40001", "40P01", REF_RACE].includes(codeOf(error));
}

/**
 * Whether the server cannot be reached for now: the connection was lost or could not be made, or
 * the server starts, stops or has no slot.
 */
export function isAway(error: unknown): boolean {
  if (error instanceof UnansweredError) return true;
  const code = codeOf(error);
  if (/^(08|57P0[1-5]|53300)/.test(code)) return true;
  if (
    [
      "ECONNREFUSED",
      "ECONNRESET",
      "EPIPE",
      "ETIMEDOUT",
      "EHOSTUNREACH",
      "ENETUNREACH",
      "EAI_AGAIN",
    ].includes(code)
  ) {
    return true;
  }
  return (
    code === "" &&
    /Connection terminated|timeout exp|Client has encountered a connection error|Client was closed|connection is closed|read timeout/i.test(
      messageOf(error),
    )
  );
}

/**
 * Whether trying again, on another connection where need be, may well succeed.
 * What a lost connection was doing may have happened.
 */
export function isTransient(error: unknown): boolean {
  return gaveWay(error) || isAway(error) || isPoolWait(error);
}

/** What {@link toStoreError} can say about a call that failed. */
export interface FailedCall {
  readonly location: string;
  readonly poolMax: number;
  readonly statementTimeoutMs: number;
  /** Whether it wrote, and what became of that is not known. */
  readonly unknown: boolean;
}

/** Turns what PostgreSQL or the network raised into the error that callers see, without values of statements. */
export function toStoreError(error: unknown, call: FailedCall): unknown {
  if (error instanceof AgstateError) return error;
  const { location } = call;
  const code = codeOf(error);
  const message = toldMessage(error);
  const say = (
    as: "STORE_FULL" | "STORE_READONLY" | "STORE_DAMAGED" | "STORE_UNAVAILABLE" | "STORE_BUSY",
    explanation: string,
    details: Record<string, unknown> = {},
  ) =>
    new AgstateError(
      as,
      `store ${location}: ${explanation} (${code === "" ? "" : `${code}: `}${message})`,
      { location, code, ...details },
      { cause: toldError(error) },
    );
  if (call.unknown)
    return say(
      "STORE_UNAVAILABLE",
      "the answer to a write was lost, and asking again had none either, so whether it happened is not known; when the store can be reached, refresh the branch and look at its head before you write the same again",
      { outcome: "unknown" },
    );
  if (code === "53100")
    return say("STORE_FULL", "the server has no space left; nothing was written");
  if (code === "25006")
    return say(
      "STORE_READONLY",
      "the server takes no writes: it is a replica, so that the primary is to be named in the store's URL, or its transactions are read-only (default_transaction_read_only); agstate doctor tells which",
    );
  if (code === "42501")
    return say(
      "STORE_READONLY",
      "this role has not the rights on the schema that this needs; agstate doctor tells which",
    );
  if (/^XX00[12]/.test(code)) return say("STORE_DAMAGED", "the server found damaged data");
  if (code === "57014")
    return say(
      "STORE_BUSY",
      `the server gave the statement up, as it takes at most ${call.statementTimeoutMs} ms; nothing was written; try again, or raise the limit statementTimeoutMs`,
      { statementTimeoutMs: call.statementTimeoutMs },
    );
  if (code === "55P03")
    return say(
      "STORE_BUSY",
      "what this needs was locked by others for as long as the limit busyTimeoutMs allows; nothing was written; try again",
    );
  if (gaveWay(error)) return say("STORE_BUSY", "others were in the way each time; try again");
  if (isPoolWait(error))
    return say(
      "STORE_BUSY",
      `all ${call.poolMax} connections of the pool stayed in use; raise the limit poolMax, or do less at once`,
      { poolMax: call.poolMax },
    );
  if (isAway(error) || code === "ENOTFOUND")
    return say("STORE_UNAVAILABLE", "the server cannot be reached");
  if (code !== "") return say("STORE_UNAVAILABLE", "the server refused");
  if (OF_CONNECTING.test(message))
    return say("STORE_UNAVAILABLE", "the server and the store's URL do not fit each other");
  return error;
}
