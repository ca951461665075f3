import { AgstateError } from "../core/errors.js";
import { quoteForMessage } from "../core/names.js";
import { checkPolicies, type Policies } from "../merge/policy.js";

/**
 * Reads merge policies given as `PATH=STRATEGY`. A path may hold `=` itself, and so may the key of `by-id:KEY`.
 *
 * @throws AgstateError `INVALID_ARGUMENT`, `INVALID_POLICY`, `INVALID_PATH`
 */
export function policiesFrom(given: readonly string[] = []): Policies {
  const entries = given.map((text): [string, string] => {
    const named = /=(?:by-id|custom):/.exec(text);
    const at = named?.index ?? text.lastIndexOf("=");
    if (at < 0) {
      throw new AgstateError(
        "INVALID_ARGUMENT",
        `--policy ${quoteForMessage(text)} is not PATH=STRATEGY; write it like /messages=append`,
        { policy: text },
      );
    }
    return [text.slice(0, at), text.slice(at + 1)];
  });
  return checkPolicies(Object.fromEntries(entries));
}
