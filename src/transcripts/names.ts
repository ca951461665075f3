import { isAgstateError } from "../core/errors.js";
import type { JsonValue } from "../core/json.js";
import { checkRefComponent } from "../refs/names.js";

/** Longest part of a name that is taken from a file, in bytes; what is put around it fits as well. */
const PART_MAX_BYTES = 120;

/**
 * Gives the conversations of one file their branches, each a different one.
 *
 * The agent is `task-<task_id>`, or, without a task_id, named after the file.
 * The branch is `trial-<trial>`, or, without a trial, `conversation-<number>`
 * in the order of the file. A branch that is taken gets `-2`, `-3` and so on.
 */
export class ConversationNames {
  private readonly taken = new Set<string>();
  /** The last number tried behind a name, so that a thousand equal names stay cheap. */
  private readonly counters = new Map<string, number>();
  private count = 0;

  constructor(private readonly file: string) {}

  next(fields: { task_id?: JsonValue; trial?: JsonValue }): { agent: string; branch: string } {
    this.count++;
    const task = part(fields.task_id);
    const trial = part(fields.trial);
    const agent = task === "" ? nameOfFile(this.file) : `task-${task}`;
    const branch = trial === "" ? `conversation-${this.count}` : `trial-${trial}`;
    return { agent, branch: this.unused(agent, branch) };
  }

  private unused(agent: string, branch: string): string {
    const first = `${agent}/${branch}`;
    let name = branch;
    let number = this.counters.get(first) ?? 1;
    while (this.taken.has(`${agent}/${name}`)) {
      number++;
      name = `${branch}-${number}`;
    }
    this.counters.set(first, number);
    this.taken.add(`${agent}/${name}`);
    return name;
  }
}

/** A ref component made of a file's name without its folder and its extensions. */
export function nameOfFile(file: string): string {
  const base = file.split(/[\\/]/).at(-1) as string;
  const name = part(base.replace(/(?:\.traj)?(?:\.(?:json|jsonl|ndjson))?$/i, ""));
  if (name === "") return "transcript";
  try {
    return checkRefComponent("name", name);
  } catch (error) {
    // Such as HEAD, or a name that looks like a commit id.
    if (!isAgstateError(error, "INVALID_NAME")) throw error;
    return `transcript-${name}`;
  }
}

/** What of a value may stand inside a ref component; empty when nothing may. */
function part(value: JsonValue | undefined): string {
  if (typeof value !== "string" && typeof value !== "number") return "";
  const kept = String(value)
    .normalize("NFC")
    .replace(/[^\p{L}\p{M}\p{N}._-]+/gu, "-");
  return cut(kept)
    .replace(/\.{2,}/g, ".")
    .replace(/^[-.]+|[-.]+$/g, "")
    .replace(/\.lock$/i, "-lock");
}

function cut(text: string): string {
  let bytes = 0;
  let result = "";
  for (const character of text) {
    bytes += Buffer.byteLength(character);
    if (bytes > PART_MAX_BYTES) break;
    result += character;
  }
  return result;
}
