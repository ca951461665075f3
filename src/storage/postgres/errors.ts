import { AgstateError } from "../../core/errors.js";

interface ServerError {
  readonly code?: string;
  readonly message?: string;
}

const codeOf = (error: unknown): string => {
  const code = (error as ServerError | null)?.code;
  return typeof code === "string" ? code : "";
};

/** The write function's own: somebody else created the same ref at the same time. */
const REF_RACE = "AG001";

/**
 * Whether trying again, on another connection where need be, may well succeed:
 * the connection was lost, the server starts, stops or has no slot, or the
 * transaction gave way to another. What a lost connection was doing may have
 * happened.
 */
export function isTransient(error: unknown): boolean {
  const code = codeOf(error);
  if (code === "40001" || code === "40P01" || code === REF_RACE) return true;
  if (/^(08|57P0[1-5]|53300)/.test(code)) return true;
  if (
    ["ECONNREFUSED", "ECONNRESET", "EPIPE", "ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH"].includes(
      code,
    )
  ) {
    return true;
  }
  const message = (error as ServerError | null)?.message ?? "";
  return (
    code === "" &&
    /Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error|connection is closed|Query read timeout/i.test(
      message,
    )
  );
}

/** Turns what PostgreSQL or the network raised into the error that callers see. */
export function toStoreError(error: unknown, location: string): unknown {
  if (error instanceof AgstateError) return error;
  const code = codeOf(error);
  const message = error instanceof Error ? error.message : String(error);
  const say = (
    as: "STORE_FULL" | "STORE_READONLY" | "STORE_DAMAGED" | "STORE_UNAVAILABLE" | "STORE_BUSY",
    explanation: string,
  ) =>
    new AgstateError(
      as,
      `store ${location}: ${explanation} (${code === "" ? "" : `${code}: `}${message})`,
      { location, code },
      { cause: error },
    );
  if (code === "53100")
    return say("STORE_FULL", "the server has no space left; nothing was written");
  if (code === "25006")
    return say("STORE_READONLY", "the server takes no writes, a replica perhaps");
  if (code === "42501")
    return say("STORE_READONLY", "this role has not the rights on the schema that this needs");
  if (/^XX00[12]/.test(code)) return say("STORE_DAMAGED", "the server found damaged data");
  if (code === "57014" || code === "55P03")
    return say("STORE_BUSY", "the server gave up after its time limit; try again");
  if (isTransient(error)) return say("STORE_UNAVAILABLE", "the server cannot be reached");
  if (code !== "") return say("STORE_UNAVAILABLE", "the server refused");
  return error;
}
