import type { JsonValue } from "../core/json.js";
import type { Kept } from "../objects/kept.js";
import { isStillWritten } from "./unchanged.js";

/**
 * What LangGraph's own serializer last wrote of each message that is still in use, as it is stored.
 *
 * LangGraph hands over the whole conversation at each step, the messages of before as the same instances. It is
 * one for the process: what is written of a message does not depend on who writes it.
 */
const written = new WeakMap<object, Kept>();

/**
 * What is stored of an object that was written before and would be written the same now.
 *
 * @param payloadOf takes what the serializer wrote from what is stored
 * @returns undefined when it has to be written
 */
export function recall(
  object: object,
  payloadOf: (stored: JsonValue) => JsonValue | undefined,
): Kept | undefined {
  const kept = written.get(object);
  if (kept === undefined || !isStillWritten(object, payloadOf(kept.value))) return undefined;
  return kept;
}

/** Remembers what is stored of an object, unless changes of that object could not be found out. */
export function remember(object: object, payload: JsonValue, stored: Kept): void {
  if (isStillWritten(object, payload)) written.set(object, stored);
}
