import { isJsonObject, type JsonObject, type JsonValue } from "../core/json.js";
import { parsePointer } from "../core/json-pointer.js";
import type { StepAction } from "../objects/commit.js";
import type { Phase } from "../objects/data-policy.js";
import {
  type Isolation,
  isolationBelow,
  isolationNode,
  isolationOfKey,
  union,
} from "../objects/isolation.js";
import type { Elsewhere } from "../objects/pointer.js";

export type PlacedPhases = ReadonlyMap<Phase, Elsewhere>;

/** Members of a record that say how a step was done, and nothing of what went in or came out. */
const HEADERS = new Set([
  "v",
  "name",
  "attempt",
  "effect",
  "startedAt",
  "completedAt",
  "place",
  "approval",
  // Addresses and versions, which whoever hands the work off and goes on with it must be able to read.
  "reliesOn",
]);

/** Which phase a member of a step's record is of; null when it is of none. */
function phaseOf(action: StepAction, member: string): Phase | null {
  if (HEADERS.has(member)) return null;
  if (action === "inference") return "inference";
  return member === "input" ? "tool" : "result";
}

/**
 * The isolation policy of one step's record: what the workflow's says of paths, and where its phases belong.
 *
 * Of an error its message belongs to the phase: name and code come from the program. A record that is
 * no object belongs as a whole to what the step gave. Edits of a state that a run keeps as a step belong to where the value that
 * they edit belongs.
 *
 * @param elsewhereOf where the value at a path of the state belongs
 */
export function policyOfStep(
  policy: Isolation | null,
  phases: PlacedPhases,
  action: StepAction,
  record: JsonValue,
  elsewhereOf: (path: readonly string[]) => Elsewhere | null,
): Isolation | null {
  if (!isJsonObject(record)) {
    const node = placed(phases.get(action === "inference" ? "inference" : "result"));
    return policy === null || node === null ? (node ?? policy) : union(policy, node);
  }
  const keys = new Map<string, Isolation>();
  for (const member of Object.keys(record)) {
    const phase = phaseOf(action, member);
    const edited = member === "input" ? editedElsewhere(record, elsewhereOf) : undefined;
    const node = phase === null ? null : placed(edited ?? phases.get(phase));
    const declared = isolationOfKey(policy, member);
    if (node === null) {
      if (declared !== null) keys.set(member, declared);
      continue;
    }
    const own =
      member === "error" && isJsonObject(record.error)
        ? (isolationBelow("message", node) as Isolation)
        : node;
    keys.set(member, declared === null ? own : union(declared, own));
  }
  if (keys.size === 0) return policy;
  const { isolated = false, elsewhere = null } = policy ?? {};
  return isolationNode({ isolated, elsewhere, keys });
}

/** The step as which a run keeps an edit of its branch's state; its input are the operations. */
export const UPDATE_STEP = "agstate:update";

function editedElsewhere(
  { name, input }: JsonObject,
  elsewhereOf: (path: readonly string[]) => Elsewhere | null,
): Elsewhere | undefined {
  if (name !== UPDATE_STEP || !Array.isArray(input)) return undefined;
  for (const operation of input as readonly JsonValue[]) {
    if (!isJsonObject(operation) || typeof operation.path !== "string") continue;
    const found = elsewhereOf(parsePointer(operation.path));
    if (found !== null) return found;
  }
  return undefined;
}

function placed(elsewhere: Elsewhere | undefined): Isolation | null {
  return elsewhere === undefined ? null : isolationNode({ isolated: true, elsewhere });
}
