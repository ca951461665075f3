import { type Isolation, isolationOfKey } from "../../objects/isolation.js";
import type { Repository } from "../repository.js";

/**
 * How a review's record is kept: what of a step's input and output the workflow isolates in step records
 * is an object of its own here, too, and the very same one, so that whoever erases it misses nothing.
 */
export function reviewIsolation({ stepPolicy }: Repository): Isolation | null {
  const subject = below("input", isolationOfKey(stepPolicy, "input"));
  const found = below("output", isolationOfKey(stepPolicy, "output"));
  const keys = new Map<string, Isolation>();
  if (subject !== null) keys.set("subject", subject);
  const decision = below("decision", below("found", found));
  for (const [key, policy] of decision?.keys ?? []) keys.set(key, policy);
  return keys.size === 0 ? null : { isolated: false, any: null, keys };
}

function below(key: string, policy: Isolation | null): Isolation | null {
  return policy && { isolated: false, any: null, keys: new Map([[key, policy]]) };
}
