import { AgstateError } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";
import { quoteForMessage } from "../../core/names.js";
import { isWithheld } from "../../core/withheld.js";
import type { LoadedCommit } from "../../objects/commit-reader.js";
import { normalize } from "../../objects/normalize.js";
import type { CheckedSchema } from "./schema.js";

/** What is migrated: a commit's state, of an older version, as it was read. */
export interface Migrating {
  readonly schema: CheckedSchema;
  readonly commit: LoadedCommit;
  readonly from: number;
  /** Parts of the answer that equal it hold its very objects. */
  readonly value: JsonValue;
  /** Makes what migrations are given: a value like it that nobody else has. */
  readonly copy: (value: JsonValue) => JsonValue;
  readonly maxBytes: number;
}

/**
 * Brings a state to the schema's version, a migration after the other. What each answers is checked as any state is, and
 * copied, so that no migration has in its hands what another, or the caller, holds. A state that is withheld as a whole stays so.
 *
 * @throws AgstateError `MIGRATION_FAILED`
 */
export function migrated(what: Migrating): JsonValue {
  const { schema, from, value, maxBytes } = what;
  if (isWithheld(value)) return value;
  let state = what.copy(value);
  for (let version = from; version < schema.version; version++) {
    const answer = answerOf(what, version, state);
    try {
      state = normalize(answer, {
        maxBytes,
        previous: version === schema.version - 1 ? value : undefined,
      });
    } catch (error) {
      throw failed(what, version, "answered what no state can be", error);
    }
  }
  return state;
}

function answerOf(what: Migrating, version: number, state: JsonValue): unknown {
  let answer: unknown;
  try {
    answer = what.schema.migration(version)(state);
  } catch (error) {
    const name = error instanceof Error ? error.name : "a value that is no Error";
    throw failed(what, version, `failed with ${name}${placeOf(error)}`, error);
  }
  if (answer instanceof Promise) {
    // Nobody else waits for it.
    answer.catch(() => undefined);
    throw failed(what, version, "answered a promise; migrations are synchronous");
  }
  return answer;
}

function failed(
  { commit: { id, workflow }, schema }: Migrating,
  from: number,
  how: string,
  cause?: unknown,
): AgstateError {
  // What was thrown may tell of the state; the cause has it.
  const rest = cause === undefined ? "" : ", which is this error's cause";
  return new AgstateError(
    "MIGRATION_FAILED",
    `the migration of states from version ${from} to ${from + 1} ${how}${rest}: at commit ${id} of workflow ${quoteForMessage(workflow)}`,
    { workflow, commit: id, from, to: from + 1, version: schema.version },
    cause === undefined ? {} : { cause },
  );
}

/** Where an error was thrown, as ` (file.js:3:14)`, without its message. */
function placeOf(error: unknown): string {
  if (!(error instanceof Error) || typeof error.stack !== "string") return "";
  const head = error.message === "" ? error.name : `${error.name}: ${error.message}`;
  if (!error.stack.startsWith(`${head}\n`)) return "";
  const [first = ""] = error.stack.slice(head.length + 1).split("\n", 1);
  const place = /([^/\\() ]+:[0-9]+:[0-9]+)\)?$/.exec(first)?.[1];
  return place === undefined ? "" : ` (${place})`;
}
