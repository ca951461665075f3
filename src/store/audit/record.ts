import { setTimeout as sleep } from "node:timers/promises";
import type { ObjectId } from "../../core/ids.js";
import { isJsonObject, type JsonObject, type JsonValue } from "../../core/json.js";
import { checkIdentity } from "../../core/names.js";
import { encodeValue, toLink } from "../../objects/encode.js";
import { ObjectSink } from "../../objects/sink.js";
import { EVENTS_REF } from "../../refs/names.js";
import type { RefUpdate } from "../../refs/ref-store.js";
import type { Repository } from "../repository.js";
import { prepareCommit } from "../write-commit.js";
import type { AuditKind } from "./types.js";

/** The version of the record that this code writes. */
const RECORD_VERSION = 1;

const ATTEMPTS = 20;
const PAUSE_MAX_MS = 20;
const SAYS_MAX_LENGTH = 200;

/** What is recorded this way. */
const EVENT_KINDS = [
  "refused",
  "collected",
  "exported",
  "key-rotated",
  "key-destroyed",
] as const satisfies readonly AuditKind[];

/** Something to record: names, ids, paths, hashes and counts, and never what a step was given or gave. */
export interface AuditNote {
  readonly kind: (typeof EVENT_KINDS)[number];
  readonly actor: string;
  /** What happened, in a few words, for the log. */
  readonly says: string;
  readonly facts: { readonly [name: string]: string | number | null };
}

/** An event as its commit's state keeps it. */
export interface AuditRecord extends Pick<AuditNote, "kind" | "facts"> {
  readonly v: number;
  /** How often it happened since it was recorded last; 1 unless it goes on and on. */
  readonly times: number;
}

/** A record as it was read, or null when it is of a version or a form that this code does not know. */
export function parseAuditRecord(value: JsonValue | undefined): AuditRecord | null {
  if (!isJsonObject(value)) return null;
  const { v, kind, facts, times } = value;
  const known =
    typeof v === "number" &&
    v <= RECORD_VERSION &&
    (EVENT_KINDS as readonly unknown[]).includes(kind) &&
    isJsonObject(facts) &&
    typeof times === "number";
  return known ? (value as unknown as AuditRecord) : null;
}

/**
 * Commits an event to `refs/audit/events`, once, on top of what is there.
 *
 * @returns false when others were faster every time, and nothing was written
 * @throws AgstateError what the storage raises
 */
export async function writeEvent(
  repository: Repository,
  { kind, actor, says, facts }: AuditNote,
  times: number,
): Promise<boolean> {
  const record: AuditRecord = { v: RECORD_VERSION, kind, facts: short(facts), times };
  const message = shortly(times === 1 ? says : `${says} (${times} times)`);
  const value = record as unknown as JsonObject;
  return (await appendRecord(repository, EVENTS_REF, { value, actor, message })) !== null;
}

const RETRY = { "agstate.operation": "record" };

/**
 * Commits a record as the state of a commit on top of what a ref below `refs/audit/` is at; in plain, whatever the
 * workflow's keys are.
 *
 * @returns the commit; null when others were faster every time, and nothing was written
 * @throws AgstateError what the storage raises
 */
export async function appendRecord(
  repository: Repository,
  ref: string,
  { value, actor, message }: { value: JsonObject; actor: string; message: string },
): Promise<ObjectId | null> {
  const { refs, commits } = repository;
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    if (attempt > 0) {
      repository.context.telemetry.count("agstate.cas.retries", 1, RETRY);
      await sleep(Math.random() * PAUSE_MAX_MS);
    }
    const head = await refs.head(ref);
    const before =
      head === undefined || head.row.id === null
        ? undefined
        : {
            row: head.row,
            commit: head.commit ? commits.prime(head.commit) : await commits.read(head.row.id),
          };
    const sink = new ObjectSink();
    const prepared = prepareCommit(repository, {
      sink,
      parents: before === undefined ? [] : [before.commit],
      root: { state: toLink(sink, encodeValue(sink, value, null)) },
      author: checkIdentity("actor", actor),
      minStep: 1,
      options: { message },
    });
    const update: RefUpdate = {
      ref,
      expect:
        before === undefined
          ? { kind: "absent" }
          : { kind: "id", id: before.commit.id, seq: before.row.seq },
      target: prepared.record.id,
      commits: [prepared.record],
      note: { actor, reason: message },
    };
    const objects = prepared.objects.map((object) => object.record);
    const [answer] = await refs.apply({ updates: [update], objects });
    if (answer?.outcome === "moved" || answer?.outcome === "landed") return prepared.record.id;
  }
  return null;
}

function short(facts: AuditNote["facts"]): AuditNote["facts"] {
  return Object.fromEntries(
    Object.entries(facts).map(([name, fact]) => [
      name,
      typeof fact === "string" ? cut(fact) : fact,
    ]),
  );
}

/** On one line, as logs take it. */
function shortly(text: string): string {
  return JSON.stringify(cut(text)).slice(1, -1);
}

/** Not in the middle of a character. */
function cut(text: string): string {
  if (text.length <= SAYS_MAX_LENGTH) return text;
  return `${[...text.slice(0, SAYS_MAX_LENGTH)].slice(0, -1).join("")}...`;
}
