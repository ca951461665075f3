import { textSource } from "./text.mjs";

const ROLES = ["assistant", "tool", "assistant", "user"];
/** A message's text has from this many characters to that many, at random: answers of tools are long, calls are short. */
const TEXT_MIN = 200;
const TEXT_MAX = 4000;

/** An agent's state of about so many bytes of JSON: a task, and the messages so far. */
export function agentState(bytes, seed) {
  const text = textSource(seed);
  const messages = [];
  for (let size = 0; size < bytes; ) {
    const message = makeMessage(messages.length, text);
    size += message.content.length + 64;
    messages.push(message);
  }
  return { task: text(1000), messages };
}

/** The state with its last messages new, as many as make up a share of it; all others are the same objects. */
export function withLastChanged({ messages, ...rest }, share, seed) {
  const text = textSource(seed);
  const kept = messages.slice(0, Math.floor(messages.length * (1 - share)));
  const fresh = messages.slice(kept.length).map((_, i) => makeMessage(kept.length + i, text));
  return { ...rest, messages: [...kept, ...fresh] };
}

function makeMessage(index, text) {
  const content = text(TEXT_MIN + ((index * 7919) % (TEXT_MAX - TEXT_MIN)));
  return { content, id: `message-${index}`, role: ROLES[index % ROLES.length] };
}
