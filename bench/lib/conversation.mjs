import { textSource } from "./text.mjs";

/** A message's size in canonical JSON. */
export const MESSAGE_BYTES = 500;

const ROLES = ["assistant", "tool", "assistant", "user"];

/** Messages of exactly `MESSAGE_BYTES` bytes of canonical JSON, of the given number. */
export function messages(count, seed) {
  const text = textSource(seed);
  return Array.from({ length: count }, (_, i) => {
    const role = ROLES[i % ROLES.length];
    const frame = JSON.stringify({ content: "", role }).length;
    return { content: text(MESSAGE_BYTES - frame), role };
  });
}

/**
 * What it takes to store the whole state after each step: the sum of the sizes of
 * `{"messages":[...]}` in canonical JSON, after the first message, the second, and so on.
 */
export function wholeStatesBytes(list) {
  let size = JSON.stringify({ messages: [] }).length;
  let total = 0;
  for (const [i, message] of list.entries()) {
    size += JSON.stringify(message).length + (i === 0 ? 0 : 1);
    total += size;
  }
  return total;
}
