import { AgstateError } from "../core/errors.js";
import { isJsonObject, type JsonValue } from "../core/json.js";
import { canonicalText } from "./canonical.js";

/**
 * What of a workflow's data has keys: nothing; hashes of what is given to steps (`hashes`); or these, and every
 * payload is encrypted (`payloads`).
 */
export const KEYED = ["nothing", "hashes", "payloads"] as const;
export type Keyed = (typeof KEYED)[number];

/** What a workflow's row says of its data, so that it is known before any commit is read. */
export interface DataPolicy {
  /** Paths whose values are objects of their own. */
  readonly isolation: readonly string[];
  /** Paths with `{subject}` in the place of whose data stands there. */
  readonly subjects: readonly string[];
  readonly keyed: Keyed;
}

/** What a policy has that says no more than its paths. */
const DEFAULTS = { subjects: [], keyed: "nothing" } as const;

/** A policy as the row's text: an object of what it says, or a list of its paths alone, which is the older form. */
export function formatDataPolicy(policy: DataPolicy): string {
  const { isolation, subjects, keyed } = policy;
  const more = {
    ...(subjects.length > 0 && { subjects }),
    ...(keyed !== DEFAULTS.keyed && { keyed }),
  };
  return canonicalText(Object.keys(more).length === 0 ? isolation : { isolation, ...more });
}

/**
 * Reads the row's text.
 *
 * @throws AgstateError `UNSUPPORTED_ENCODING` for what a newer version wrote: not to know what is kept apart, or
 *   encrypted, would be to write it in clear
 */
export function parseDataPolicy(text: string): DataPolicy {
  const said = JSON.parse(text) as JsonValue;
  if (Array.isArray(said)) return { ...DEFAULTS, isolation: said as string[] };
  if (!isJsonObject(said)) throw unknownPolicy("");
  const { isolation = [], subjects = [], keyed = "nothing", ...others } = said;
  const [other] = Object.keys(others);
  if (other !== undefined) throw unknownPolicy(other);
  if (!(KEYED as readonly unknown[]).includes(keyed)) throw unknownPolicy(`keyed: ${keyed}`);
  return {
    isolation: isolation as string[],
    subjects: subjects as string[],
    keyed: keyed as Keyed,
  };
}

function unknownPolicy(said: string): AgstateError {
  return new AgstateError(
    "UNSUPPORTED_ENCODING",
    `the workflow declares ${said === "" ? "something" : JSON.stringify(said)} of its data that this version does not know; use a newer agstate`,
    { declares: said },
  );
}
