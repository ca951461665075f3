import type { JsonValue } from "../core/json.js";
import type { Kept } from "../objects/kept.js";
import { isStillWritten } from "./unchanged.js";
import { learn } from "./write-message.js";

/**
 * What is stored of each message that is still in use, as LangGraph's own serializer writes it.
 *
 * LangGraph hands over the whole conversation at each step, the messages of before as the same instances. It is
 * one for the process: what is written of a message does not depend on who writes it.
 */
const known = new WeakMap<object, Kept>();

/**
 * What is stored of a message that was written before and would be written the same now.
 *
 * @param isStill tells whether what is stored would be written of the message
 * @returns undefined when it has to be written
 */
export function recall(
  object: object,
  isStill: (object: object, stored: JsonValue) => boolean,
): Kept | undefined {
  const kept = known.get(object);
  return kept === undefined || !isStill(object, kept.value) ? undefined : kept;
}

/** Remembers what is stored of a message. */
export function remember(object: object, stored: Kept): void {
  known.set(object, stored);
}

/** Remembers what the serializer wrote of an object, if that is what it should be of a usual message. */
export function rememberSerialized(object: object, payload: JsonValue, stored: Kept): void {
  if (!isStillWritten(object, payload)) return;
  learn(object);
  remember(object, stored);
}
