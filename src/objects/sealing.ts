import type { ObjectId } from "../core/ids.js";
import { isJsonObject, type JsonValue } from "../core/json.js";
import type { WithheldNote, WithheldReason } from "../core/withheld.js";
import { ENCODING, type ObjectRecord, type StoredObject } from "../storage/port.js";

/** Makes the bytes under which a blob's text is stored: the same for the same text, so that what is unchanged keeps its id. */
export interface Seal {
  seal(text: string): { readonly body: Buffer; readonly encoding: number };
  /** Seals what belongs to one subject; null when its key has to be loaded first. Left out, no subject has one of its own. */
  of?(owner: string): Seal | null;
}

/** A text that was sealed otherwise than most of its workflow: as parts of it would be, were they objects of their own. */
export interface OwnedText {
  readonly text: string;
  readonly seal: Seal;
}

/** Reads what a {@link Seal} made: the text, or why it is not told. Asked for blobs that are not plain. */
export interface Opener {
  /** Loads what opening these takes; is called, and waited for, before objects are opened that are none of a commit's row. */
  prepare?(records: readonly StoredObject[]): Promise<void>;
  /** @throws AgstateError `CORRUPT_OBJECT` */
  open(record: ObjectRecord): string | OwnedText | WithheldNote;
}

/** Says, in the place of what was encoded, that keys of subjects are to be loaded before. */
export class SubjectKeysNeeded extends Error {
  constructor(readonly subjects: readonly string[]) {
    super("keys of subjects are needed first");
  }
}

/** Reads what pointers stand for. */
export interface Resolver {
  /** @returns by id the texts of those whose regions can be had, in one call to each region, or why one there is not told */
  resolve(pointers: readonly ObjectRecord[]): Promise<ReadonlyMap<ObjectId, string | WithheldNote>>;
}

/** Text as it is. */
export const PLAIN_SEAL: Seal = {
  seal: (text) => ({ body: Buffer.from(text), encoding: ENCODING.plain }),
};

/** Opens nothing: says of each body why. */
export const CLOSED: Opener = {
  open: ({ encoding, body }) =>
    encoding === ENCODING.pointer ? noteOfPointer(body) : { reason: "key" },
};

/** Why an object as it is stored is not told to who has neither keys nor other regions; null when it is. */
export function noteOf(stored: StoredObject): WithheldNote | null {
  if ("tombstone" in stored) return noteOfTombstone(stored.tombstone);
  const plain = (stored.encoding ?? ENCODING.plain) === ENCODING.plain;
  return plain ? null : (CLOSED.open(stored) as WithheldNote);
}

/** What a pointer to another region says of what it points to. */
function noteOfPointer(body: Uint8Array): WithheldNote {
  const { region, classification } = parsed(body);
  return {
    reason: "region",
    ...(typeof region === "string" && { region }),
    ...(typeof classification === "string" && { classification }),
  };
}

/** What a tombstone says: canonical JSON with a member `reason`; whatever else is in it counts as erased. */
export function noteOfTombstone(tombstone: Uint8Array): WithheldNote {
  const reason: WithheldReason = parsed(tombstone).reason === "expired" ? "expired" : "erased";
  return { reason };
}

function parsed(body: Uint8Array): { readonly [key: string]: JsonValue } {
  try {
    const value = JSON.parse(Buffer.from(body).toString("utf8")) as JsonValue;
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}
