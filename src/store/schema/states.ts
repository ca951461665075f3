import type { ObjectId } from "../../core/ids.js";
import type { JsonValue } from "../../core/json.js";
import { isWithheld } from "../../core/withheld.js";
import type { LoadedCommit } from "../../objects/commit-reader.js";
import { decodeValue, type Place, placeBelow } from "../../objects/decode.js";
import { createDraftContext } from "../../objects/draft/draft.js";
import { reconcile } from "../../objects/draft/reconcile.js";
import { type Draft, type DraftContext, LeafDraft } from "../../objects/draft/types.js";
import { type Link, toLink } from "../../objects/encode.js";
import { normalize } from "../../objects/normalize.js";
import type { ObjectReader } from "../../objects/reader.js";
import type { ObjectSink } from "../../objects/sink.js";
import type { Repository } from "../repository.js";
import { migrated } from "./migration.js";
import type { CheckedSchema } from "./schema.js";
import { type MigratedKey, MigratedValues } from "./values.js";

/** A commit whose state is of an older version, and how its objects are read. */
export interface OlderState {
  readonly repository: Repository;
  readonly commit: LoadedCommit;
  readonly from: number;
  readonly reader: ObjectReader;
}

/**
 * Reads the value at a path of a state after migrating it.
 *
 * @returns undefined when there is no value at the path
 * @throws AgstateError `MIGRATION_FAILED`
 */
export async function migratedAt(
  older: OlderState,
  tokens: readonly string[],
): Promise<JsonValue | undefined> {
  const { repository, reader } = older;
  const { context } = repository;
  context.migratedValues ??= new MigratedValues(context.limits.cacheMaxBytes);
  const key = keyOf(older);
  let state = context.migratedValues.get(key);
  if (state === undefined) {
    const stored = await decodeValue(reader, linkOf(older));
    state = migrateStored(older, stored);
    context.migratedValues.set(key, state);
  }
  let place: Place | undefined = { value: state };
  for (const token of tokens) {
    if (place === undefined) return undefined;
    place = await placeBelow(reader, place, token);
  }
  // Whoever gets it may change it.
  return place && "value" in place ? copied(place.value) : undefined;
}

/**
 * The draft of a state after migrating it: what migrating did not change stays as it is stored.
 *
 * @throws AgstateError `MIGRATION_FAILED`
 */
export async function migratedDraft(older: OlderState, context: DraftContext): Promise<Draft> {
  const link = linkOf(older);
  const stored = await decodeValue(older.reader, link);
  const state = migrateStored(older, stored);
  const draft = await context.open(link);
  if (isWithheld(stored)) return draft;
  return link.type === "blob"
    ? new LeafDraft(context, state)
    : reconcile(context, draft, stored, state);
}

/**
 * Encodes a state after migrating it; what is new goes into the sink.
 *
 * @throws AgstateError `MIGRATION_FAILED`; SubjectKeysNeeded when something belongs to a subject whose key is not at hand
 */
export async function encodeMigrated(older: OlderState, sink: ObjectSink): Promise<Link> {
  const context = createDraftContext(older.reader, sink);
  const draft = await migratedDraft(older, context);
  const link = toLink(sink, await draft.encode(older.repository.statePolicy));
  sink.ready();
  return link;
}

function migrateStored(older: OlderState, value: JsonValue): JsonValue {
  const { commit, from, repository } = older;
  const maxBytes = repository.context.limits.stateMaxBytes;
  return migrated({ schema: schemaOf(older), commit, from, value, copy: copied, maxBytes });
}

/** A value like it that shares nothing with it. */
function copied(value: JsonValue): JsonValue {
  return normalize(value, { maxBytes: Number.POSITIVE_INFINITY });
}

function keyOf(older: OlderState): MigratedKey {
  const { repository, from } = older;
  const state: ObjectId = linkOf(older).id;
  return { workflow: repository.workflow, state, from, to: schemaOf(older).version };
}

function linkOf({ commit }: OlderState): Link {
  return commit.root.state as Link;
}

function schemaOf({ repository }: OlderState): CheckedSchema {
  return repository.schema as CheckedSchema;
}
