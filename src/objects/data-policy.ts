import { isClassification } from "../core/classification.js";
import { AgstateError } from "../core/errors.js";
import { isJsonObject, type JsonValue } from "../core/json.js";
import { canonicalText } from "./canonical.js";
import type { Elsewhere } from "./pointer.js";

/**
 * What of a workflow's data has keys: nothing; hashes of what is given to steps (`hashes`); or these, and every
 * payload is encrypted (`payloads`).
 */
export const KEYED = ["nothing", "hashes", "payloads"] as const;
export type Keyed = (typeof KEYED)[number];

/**
 * What of a step may belong to another region than its workflow.
 *
 * `inference`: what a model was given and what it answered. `tool`: what a tool was given. `result`: what came of it.
 */
export const PHASES = ["inference", "tool", "result"] as const;
export type Phase = (typeof PHASES)[number];

/** What of a workflow belongs to another region: values at a path, or a phase of all steps. */
export type PlacedPart = Elsewhere & ({ readonly path: string } | { readonly phase: Phase });

/** What a workflow's row says of its data, so that it is known before any commit is read. */
export interface DataPolicy {
  /** Paths whose values are objects of their own. */
  readonly isolation: readonly string[];
  /** Paths with `{subject}` in the place of whose data stands there. */
  readonly subjects: readonly string[];
  readonly keyed: Keyed;
  readonly placement: readonly PlacedPart[];
  /** Of a workflow that is there for the payloads of one that lives in another region: that region. */
  readonly home?: string | undefined;
}

/** What a policy has that says no more than its paths. */
const DEFAULTS = { subjects: [], keyed: "nothing", placement: [] } as const;

/** A policy as the row's text: an object of what it says, or a list of its paths alone, which is the older form. */
export function formatDataPolicy(policy: DataPolicy): string {
  const { isolation, subjects, keyed, placement, home } = policy;
  const more = {
    ...(subjects.length > 0 && { subjects }),
    ...(keyed !== DEFAULTS.keyed && { keyed }),
    ...(placement.length > 0 && { placement: placement as unknown as JsonValue }),
    ...(home !== undefined && { home }),
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
  const {
    isolation = [],
    subjects = [],
    keyed = "nothing",
    placement = [],
    home,
    ...others
  } = said;
  const [other] = Object.keys(others);
  if (other !== undefined) throw unknownPolicy(other);
  if (!(KEYED as readonly unknown[]).includes(keyed)) throw unknownPolicy(`keyed: ${keyed}`);
  if (!Array.isArray(placement) || !placement.every(isPlacedPart)) throw unknownPolicy("placement");
  return {
    isolation: isolation as string[],
    subjects: subjects as string[],
    keyed: keyed as Keyed,
    placement: placement as readonly PlacedPart[],
    ...(home !== undefined && { home: home as string }),
  };
}

function isPlacedPart(value: unknown): boolean {
  if (!isJsonObject(value)) return false;
  const { region, classification, path, phase } = value;
  return (
    typeof region === "string" &&
    isClassification(classification) &&
    (typeof path === "string") !== PHASES.includes(phase as Phase)
  );
}

function unknownPolicy(said: string): AgstateError {
  return new AgstateError(
    "UNSUPPORTED_ENCODING",
    `the workflow declares ${said === "" ? "something" : JSON.stringify(said)} of its data that this version does not know; use a newer agstate`,
    { declares: said },
  );
}
