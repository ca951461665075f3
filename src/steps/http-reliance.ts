import { httpVersionOf } from "../core/http-version.js";
import { secretKeys } from "../core/secret-keys.js";
import type { ReliedOn } from "./spec.js";

/** Names of what signs a URL, beside those that are secret anywhere. */
const isSecret = secretKeys(["sig", "signature", "key"]);

/**
 * What an answer of HTTP was read from, and in which version; null for what is no HTTP.
 *
 * What a URL holds that may be a secret is left out, so that whoever takes the work up asks without it, and learns at worst that
 * nobody knows whether it has changed.
 */
export function httpReliance(
  asked: string,
  headers: Headers,
  now: number,
): Pick<Required<ReliedOn>, "type" | "id" | "version"> | null {
  const url = new URL(asked);
  if (url.protocol !== "http:" && url.protocol !== "https:") return null;
  url.hash = "";
  url.username = "";
  url.password = "";
  for (const name of [...url.searchParams.keys()]) {
    if (isSecret(name)) url.searchParams.delete(name);
  }
  return { type: "http", id: url.href, version: httpVersionOf(headers, { now }) };
}
