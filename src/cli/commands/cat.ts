import { parsePointer } from "../../core/json-pointer.js";
import { escapeText } from "../render/escape.js";
import { prettyJson } from "../render/value.js";
import type { Session } from "../session.js";

/** `agstate cat REVISION [POINTER]`: the state, or the value at a JSON Pointer. */
export async function run(
  session: Session,
  args: readonly string[],
  options: { raw?: boolean },
): Promise<undefined> {
  const [revision = "canonical", pointer] = args;
  if (pointer !== undefined) parsePointer(pointer);
  const value = await (await session.workflow()).stateAt(revision, pointer);
  const { out } = session;
  if (options.raw === true && typeof value === "string") {
    // A person's terminal gets no control characters; a file or a program gets the very text.
    return void (await out.line(process.stdout.isTTY === true ? escapeText(value) : value));
  }
  if (out.json) return void (await out.value(value));
  await out.line(prettyJson(value));
}
