import type { ObjectId } from "./ids.js";
import type { JsonObject, JsonValue } from "./json.js";

/**
 * Why a value is not told: it was erased, its retention is over, it is in a region that the reader has not, or it is encrypted
 * and its key is not at hand.
 */
export type WithheldReason = "erased" | "expired" | "region" | "key";

/** What is said of a value that is not told. */
export interface WithheldNote {
  readonly reason: WithheldReason;
  /** Where the value is, when it is in another region. */
  readonly region?: string | undefined;
  readonly classification?: string | undefined;
}

/**
 * Stands in a value for a part that is not told: an object of the workflow whose bytes are gone, elsewhere, or sealed.
 *
 * It may be committed again, at its place or another: the commit then refers to the same object, of which nobody
 * needs to know what is in it. As JSON it is `{"$agstate":"withheld",...}`, to be looked at; that is not taken for it again.
 */
export class Withheld {
  readonly reason: WithheldReason;
  readonly region: string | null;
  readonly classification: string | null;

  /** @internal What reading a value gives; a value that somebody else made is refused where it is written. */
  constructor(
    /** Whose object it is: it means nothing in another workflow. */
    readonly workflow: string,
    /** The object that the value is, or is part of. */
    readonly link: { readonly type: "blob" | "tree"; readonly id: ObjectId },
    note: WithheldNote,
  ) {
    anyMade = true;
    this.reason = note.reason;
    this.region = note.region ?? null;
    this.classification = note.classification ?? null;
  }

  toJSON(): JsonValue {
    return { ...withheldJson(this), object: this.link.id };
  }
}

/** What is said of a withheld value as JSON. */
export function withheldJson({
  reason,
  region,
  classification,
}: WithheldNote | Withheld): JsonObject {
  return {
    [WITHHELD_MARK]: "withheld",
    reason,
    ...(region != null && { region }),
    ...(classification != null && { classification }),
  };
}

/** Why a value is not told, in words that follow its name. */
export function explainWithheld({ reason, region }: WithheldNote | Withheld): string {
  switch (reason) {
    case "erased":
      return "was erased";
    case "expired":
      return "is gone, as its retention is over";
    case "region":
      return `is in region ${region ?? "(unnamed)"}, which is not at hand; open the workflow by a file of regions that has it`;
    case "key":
      return "is encrypted, and its key is not at hand; open the store with the workflow's keys";
  }
}

/** The member that tells what is not plain JSON. */
const WITHHELD_MARK = "$agstate";

/** Whether a part of a value stands for one that is not told. */
export function isWithheld(value: unknown): value is Withheld {
  return value instanceof Withheld;
}

/** Whether a value is what {@link Withheld} is as JSON: something that was looked at, and must not be stored for what it stood for. */
export function isWithheldJson(value: object): boolean {
  return (
    Object.hasOwn(value, WITHHELD_MARK) && (value as { $agstate?: unknown }).$agstate === "withheld"
  );
}

/**
 * Objects and arrays that have one of those parts somewhere below. They are told from others without being walked; each is
 * entered by whoever makes it.
 */
const holders = new WeakSet<object>();
let anyHolder = false;
let anyMade = false;

/** The first part of a value that is withheld, the value itself included; null when there is none. */
export function firstWithheld(value: JsonValue): Withheld | null {
  if (!holdsWithheld(value)) return null;
  const given: unknown = value;
  if (given instanceof Withheld) return given;
  for (const part of Object.values(value as object)) {
    const found = firstWithheld(part as JsonValue);
    if (found !== null) return found;
  }
  return null;
}

/** Enters an object or array that was just made, if one of its parts is withheld or has a part that is. */
export function markIfHolder(made: object, parts: readonly JsonValue[]): void {
  if (!anyMade) return;
  for (const part of parts) {
    if (!holdsWithheld(part)) continue;
    anyHolder = true;
    holders.add(made);
    return;
  }
}

/** Whether this process has met a value that is withheld; in most none ever is. */
export function anyWithheld(): boolean {
  return anyMade;
}

/** Whether a value is withheld, or has a part that is. */
export function holdsWithheld(value: JsonValue): boolean {
  if (typeof value !== "object" || value === null) return false;
  const given: object = value;
  return given instanceof Withheld || (anyHolder && holders.has(given));
}
