import { getSystemErrorMap } from "node:util";
import { AgstateError } from "../core/errors.js";

const SYSTEM_CODES = new Set([...getSystemErrorMap().values()].map(([code]) => code));

/**
 * What kind of error something is, in a word that holds nothing of what was worked on: an AgstateError's code, the operating system's,
 * or the name of its class. The `name` and `code` of other errors are whatever somebody has put there.
 */
export function errorType(error: unknown): string {
  if (error instanceof AgstateError) return error.code;
  if (!(error instanceof Error)) return "_OTHER";
  // What failed is told by what stands behind it.
  if (error.constructor.name === "StepError" && error.cause instanceof Error)
    return errorType(error.cause);
  const { code } = error as { code?: unknown };
  if (typeof code === "string" && SYSTEM_CODES.has(code)) return code;
  // Its own member of that name is whatever somebody has put there, too.
  return (Object.getPrototypeOf(error) as Error).constructor.name || "Error";
}

export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
