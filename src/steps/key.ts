import { canonicalText } from "../objects/canonical.js";
import { digestText } from "../objects/hash.js";
import { CANONICAL_REF } from "../refs/names.js";

const KEY_HEX_DIGITS = 32;

/**
 * The idempotency key of a step: what goes to the outside world with its side effect, and is the
 * same however often the step is tried.
 *
 * On canonical it depends on workflow and number alone; elsewhere on the branch's incarnation as
 * well, so that branches which speculate, or were made anew under the same name, never share one.
 */
export function idempotencyKey(
  branch: { readonly workflow: string; readonly ref: string; readonly incarnation: string },
  number: number,
): string {
  const { workflow, ref, incarnation } = branch;
  const text =
    ref === CANONICAL_REF
      ? `${workflow}:${number}`
      : canonicalText([workflow, incarnation, number]);
  return digestText(text).slice(0, KEY_HEX_DIGITS);
}

/**
 * The key of a step that is gone on with. It is that with which it began, if this branch began it. A
 * branch that came by the step with another's history, by a fork or a reset, may have given its number to
 * a step of its own, so that the key is made from the origin as well.
 *
 * @param origin the key with which the step began; the id of the commit that says so, where it had none
 */
export function continuedKey(
  branch: { readonly workflow: string; readonly ref: string; readonly incarnation: string },
  number: number,
  origin: string,
): string {
  const own = idempotencyKey(branch, number);
  if (origin === own) return own;
  const { workflow, incarnation } = branch;
  return digestText(canonicalText([workflow, incarnation, number, origin])).slice(
    0,
    KEY_HEX_DIGITS,
  );
}
