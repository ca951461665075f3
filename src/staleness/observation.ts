import { isJsonObject } from "../core/json.js";
import type { Observation } from "./types.js";

const UNUSABLE: Observation = { kind: "unknown", why: "its checker answered nothing usable" };

/** What a checker answered, of which nobody knows whether it keeps to its type. */
export function observationOf(answer: unknown): Observation {
  if (typeof answer === "string") return { kind: "version", version: answer };
  if (answer === null) return { kind: "gone", why: "gone, as its checker says" };
  if (!isJsonObject(answer)) return UNUSABLE;
  const { kind, version, shown, why, again, waitMs } = answer as Readonly<Record<string, unknown>>;
  if (kind === "same") return { kind };
  if (kind === "version" && typeof version === "string") {
    return { kind, version, ...(typeof shown === "string" && { shown }) };
  }
  if (kind === "gone" && typeof why === "string") return { kind, why };
  if (kind === "unknown" && typeof why === "string") {
    const wait = typeof waitMs === "number" && waitMs >= 0 && { waitMs };
    return { kind, why, again: again === true, ...wait };
  }
  return UNUSABLE;
}

const PLAIN = /^[\w.$-]{1,60}$/;

/**
 * What kind of error a checker threw. Its message is left out: of one that is not ours nobody knows what it holds, such as
 * a URL with a password.
 */
export function failureOf(error: unknown): Observation {
  const { name, code } = (error ?? {}) as { readonly name?: unknown; readonly code?: unknown };
  const below = (error as { readonly cause?: { readonly code?: unknown } } | null)?.cause?.code;
  const parts = [name, code ?? below].filter((part) => PLAIN.test(String(part ?? "")));
  const kind = parts.length === 0 ? "" : `: ${parts.join(" ")}`;
  return { kind: "unknown", why: `its checker failed${kind}`, again: true };
}
