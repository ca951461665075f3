import { isJsonObject, type JsonValue } from "../../core/json.js";
import { isWithheld, type Withheld } from "../../core/withheld.js";
import type { LoadedCommit } from "../../objects/commit-reader.js";
import { decodeValue } from "../../objects/decode.js";
import { encodeValue, type Link, toLink } from "../../objects/encode.js";
import { normalize } from "../../objects/normalize.js";
import type { ObjectSink } from "../../objects/sink.js";
import type { FingerprintDrift, FingerprintRecord } from "../../staleness/fingerprints.js";
import type { Resource, Verdict } from "../../staleness/types.js";
import type { Repository } from "../repository.js";
import type { SideEffect } from "../side-effects.js";
import type { HandoffSummary } from "./summary.js";

/** The version of the envelope that this code writes. */
export const ENVELOPE_VERSION = 1;

/** What becomes of a changed fingerprint: `report` tells of it, `exact` lets nobody go on without a review. */
export type FingerprintTolerance = "report" | "exact";

/** What a branch is handed off with. No step runs on a branch whose head has one. */
export interface HandoffEnvelope {
  readonly v: number;
  readonly kind: "handoff";
  /** Short name of the branch that was handed off. */
  readonly branch: string;
  readonly incarnation: string;
  /** The tag at its commit, without `tags/`. */
  readonly tag: string;
  readonly by: string;
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
  readonly summary: HandoffSummary;
  /** May be empty. */
  readonly note: string;
  readonly facts: SessionFacts;
  /** What of it is not told, in words, as it is erased, over, or of another region. */
  readonly untold: readonly string[];
  readonly resources: readonly Resource[];
  readonly fingerprints: FingerprintRecord | null;
  readonly fingerprintTolerance: FingerprintTolerance;
}

/** What agstate itself knows of a session when it ends. */
export interface SessionFacts {
  /** The commit with the envelope before; null where there was none. */
  readonly since: string | null;
  /** Steps of the session: the first and last number, and how many there were. */
  readonly steps: { readonly first: number; readonly last: number; readonly count: number } | null;
  /** Steps that did something outside, or may have. */
  readonly sideEffects: Listed<Pick<SideEffect, "number" | "name" | "action" | "status" | "key">>;
  /** Steps that were begun and not sealed. */
  readonly inDoubt: Listed<{ readonly number: number; readonly name: string }>;
  /** Places at which stored merges from or into the branch wait for somebody. */
  readonly conflicts: Listed<{ readonly merge: string; readonly path: string }>;
  /** Decisions that the branch waits for. */
  readonly reviews: Listed<{ readonly id: string; readonly kind: string; readonly name: string }>;
}

/** The first of a kind, and how many there are. */
export interface Listed<T> {
  readonly count: number;
  readonly items: readonly T[];
}

/** What a branch goes on with that was taken up. */
export interface ResumedEnvelope {
  readonly v: number;
  readonly kind: "resumed";
  readonly by: string;
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
  /** The commit with the envelope that was checked; null where the branch had none. */
  readonly boundary: string | null;
  /** The tag of what was handed off; null where nothing was. */
  readonly tag: string | null;
  readonly verdict: Verdict;
  /** The review that let it go on though the verdict was not `fresh`. */
  readonly review: string | null;
  /** Resources that were not as they were, and what was found of them. */
  readonly changes: readonly ResourceChange[];
  readonly drift: readonly FingerprintDrift[];
  /** With the versions that work goes on from. */
  readonly resources: readonly Resource[];
  readonly fingerprints: FingerprintRecord | null;
  readonly fingerprintTolerance: FingerprintTolerance;
}

/** A resource that was not as it was. */
export interface ResourceChange {
  readonly type: string;
  readonly id: string;
  readonly found: "changed" | "gone" | "unknown";
  readonly was: string | null;
  readonly now: string | null;
  /** Whether its tolerance let work go on. */
  readonly tolerated: boolean;
}

export type Envelope = HandoffEnvelope | ResumedEnvelope;

/** Maps an envelope to objects, which commits on top carry over. */
export function encodeEnvelope(repository: Repository, sink: ObjectSink, envelope: Envelope): Link {
  const { stateMaxBytes } = repository.context.limits;
  const value = normalize(envelope, { maxBytes: stateMaxBytes, what: "envelope" });
  return toLink(sink, encodeValue(sink, value, repository.envelopePolicy));
}

/**
 * Reads the envelope that a commit has; null when it has none, or one of a version or form that this code does not know.
 *
 * @throws AgstateError `CORRUPT_OBJECT`, `MISSING_OBJECT`
 */
export async function envelopeOf(
  repository: Repository,
  commit: LoadedCommit,
): Promise<Envelope | Withheld | null> {
  const link = commit.root.envelope;
  if (link === undefined) return null;
  const value: unknown = await decodeValue(repository.objectsOf(commit), link);
  return isWithheld(value) ? value : parseEnvelope(value as JsonValue);
}

function parseEnvelope(value: JsonValue): Envelope | null {
  if (!isJsonObject(value)) return null;
  const { v, kind, resources, at } = value;
  const known =
    typeof v === "number" &&
    v <= ENVELOPE_VERSION &&
    (kind === "handoff" || kind === "resumed") &&
    (Array.isArray(resources) || isWithheld(resources)) &&
    typeof at === "number";
  return known ? (value as unknown as Envelope) : null;
}
