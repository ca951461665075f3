import { setTimeout as sleep } from "node:timers/promises";
import { AgstateError } from "../../core/errors.js";
import type { ObjectId } from "../../core/ids.js";
import { isJsonObject, type JsonObject, type JsonValue } from "../../core/json.js";
import { formatPointer } from "../../core/json-pointer.js";
import { type LoadedCommit, ROOT_PARTS, type RootPart } from "../../objects/commit-reader.js";
import { decodeValue } from "../../objects/decode.js";
import { createDraftContext } from "../../objects/draft/draft.js";
import { reconcile } from "../../objects/draft/reconcile.js";
import { type Encoded, encodeValue, type Link, toLink } from "../../objects/encode.js";
import { normalize } from "../../objects/normalize.js";
import type { ObjectReader } from "../../objects/reader.js";
import type { ObjectSink } from "../../objects/sink.js";
import { shortRefName } from "../../refs/names.js";
import type { RefUpdate } from "../../refs/ref-store.js";
import { BRANCHES, type RefRow } from "../../storage/port.js";
import type { Repository } from "../repository.js";
import { type PreparedCommit, prepareCommit } from "../write-commit.js";
import { cleanValue } from "./clean.js";
import type { Found } from "./found.js";
import type { Needles } from "./needles.js";
import type { PartPaths } from "./paths.js";
import { Touching } from "./reach.js";
import type { ErasedHead } from "./types.js";

/** Where stored merges are. */
export const MERGES = "refs/merges/";

/** How often a branch is tried that moves meanwhile. */
const ATTEMPTS = 100;
/** So many times without a pause, in which others would only go on. */
const QUICK_ATTEMPTS = 10;
const PAUSE_MAX_MS = 20;

/** What is read along with a head. */
const CARRIED: readonly RootPart[] = ["state", "envelope", "policy", "merge", "checkpoint"];

/** What heads are to be free of, and who says so. */
export interface Cleaning {
  readonly id: string;
  readonly by: string;
  readonly found: Found;
  readonly paths: PartPaths;
  readonly needles: Needles;
}

/** Heads that were replaced, by what they were. */
type Moved = Map<string, string>;

/** What is known from one head to the next. */
interface Known {
  readonly touching: Touching;
  readonly moved: Moved;
}

/**
 * Gives each branch and stored merge whose head holds any of it a new head that does not, by compare-and-swap: on top of the
 * old one, so that work goes on from there.
 *
 * @throws AgstateError `REF_CONFLICT` when a branch moves all the time
 */
export async function cleanHeads(
  repository: Repository,
  cleaning: Cleaning,
): Promise<ErasedHead[]> {
  const heads: ErasedHead[] = [];
  const touching = new Touching(cleaning.found);
  const moved: Moved = new Map();
  for (const prefix of [BRANCHES, MERGES]) {
    for (const row of await repository.refs.list(prefix)) {
      const head = await cleanHead(repository, cleaning, { touching, moved }, row);
      if (head === null) continue;
      heads.push(head);
      moved.set(head.old, head.new);
    }
  }
  return heads;
}

async function cleanHead(
  repository: Repository,
  cleaning: Cleaning,
  known: Known,
  first: RefRow,
): Promise<ErasedHead | null> {
  let row = first;
  for (let attempt = 1; row.id !== null; attempt++) {
    // With its state in one call: the longer it takes, the more likely somebody else is first.
    const { commit, objects: reader } = await repository.withState(row.id, true, CARRIED);
    const { name } = row;
    const prepared = await repository.keys.encoding(() =>
      cleanCommit(repository, cleaning, known, { commit, reader }, name),
    );
    if (prepared === null) return null;
    const update: RefUpdate = {
      ref: row.name,
      expect: { kind: "id", id: row.id, seq: row.seq },
      target: prepared.record.id,
      commits: [prepared.record],
      note: { actor: cleaning.by, reason: `erase: request ${cleaning.id}` },
    };
    const objects = prepared.objects.map((object) => object.record);
    const [answer] = await repository.refs.apply({ updates: [update], objects });
    if (answer?.outcome === "moved" || answer?.outcome === "landed") {
      return { ref: shortRefName(row.name), old: row.id, new: prepared.record.id };
    }
    if (attempt >= ATTEMPTS || answer?.outcome === "missing") {
      throw new AgstateError(
        "REF_CONFLICT",
        `${shortRefName(row.name)} was moved by others each of ${attempt} times that its head was to be written without what is erased; run it again when there is less going on`,
        { ref: row.name },
      );
    }
    if (answer?.outcome === "closed") return null;
    if (attempt > QUICK_ATTEMPTS) await sleep(Math.random() * PAUSE_MAX_MS);
    const actual = answer?.outcome === "conflict" ? answer.actual : undefined;
    const now = actual ?? (await repository.refs.row(row.name));
    if (now === undefined) return null;
    row = now;
  }
  return null;
}

/** The commit that is to follow a head; null when that holds nothing of it, or nothing that can be taken out of its place. */
async function cleanCommit(
  repository: Repository,
  { id, by, paths, needles }: Cleaning,
  { touching, moved }: Known,
  { commit, reader }: { readonly commit: LoadedCommit; readonly reader: ObjectReader },
  ref: string,
): Promise<PreparedCommit | null> {
  const isMerge = ref.startsWith(MERGES);
  const sink = repository.newSink();
  const root: Partial<Record<RootPart, Link>> = {};
  let merge: JsonValue | undefined;
  let checkpoint: Encoded | undefined;
  let changed = false;
  for (const part of ROOT_PARTS) {
    const link = commit.root[part];
    if (link === undefined) continue;
    // What belongs to the commit alone is not in the next one.
    const stays = part === "merge" ? isMerge : part !== "step";
    const touched = await touching.touches(reader, link);
    if (!stays) {
      changed ||= touched;
      continue;
    }
    const isRecord = part === "merge" || part === "checkpoint";
    if (!touched && !isRecord) {
      root[part] = link;
      continue;
    }
    const before = await decodeValue(reader, link);
    const cleaned = touched ? cleanValue(before, paths.get(part) ?? [], needles) : before;
    changed ||= cleaned !== before;
    if (part === "merge") {
      // What it is to merge are the heads that took the place of those that it was asked with.
      merge = cleaned === undefined ? undefined : withSources(cleaned, moved);
      changed ||= merge !== cleaned;
    } else if (part === "checkpoint") {
      checkpoint = cleaned === undefined ? undefined : encodeValue(sink, cleaned, null);
    } else if (cleaned === before) root[part] = link;
    else if (cleaned === undefined) {
      if (part === "state") root.state = toLink(sink, encodeValue(sink, {}, null));
    } else {
      const link = commit.root[part] as Link;
      root[part] = await encodeChanged(repository, sink, reader, { part, link }, before, cleaned);
    }
  }
  if (!changed) return null;
  // A checkpoint is found by its external id, and its message says of which life of its thread it is.
  const { externalId, message } = commit;
  const keeps = checkpoint !== undefined;
  return prepareCommit(repository, {
    sink,
    parents: isMerge
      ? await repository.commits.readAll(
          commit.parents.map((id) => (moved.get(id) ?? id) as ObjectId),
        )
      : [commit],
    root,
    stateVersion: commit.stateVersion,
    author: by,
    minStep: commit.nextStep,
    ...(merge === undefined ? {} : { merge }),
    ...(checkpoint === undefined ? {} : { checkpoint }),
    options: {
      message: keeps && !needles.within(message) ? message : `Erase (request ${id})`,
      ...(keeps && externalId !== undefined && !needles.within(externalId) ? { externalId } : {}),
    },
  });
}

/** The request of a stored merge, with the heads that its sources have now. */
function withSources(request: JsonValue, moved: Moved): JsonValue {
  if (!isJsonObject(request) || !Array.isArray(request.sources)) return request;
  let changed = false;
  const sources = request.sources.map((source: JsonValue) => {
    const head = isJsonObject(source) ? moved.get(source.head as string) : undefined;
    if (head === undefined) return source;
    changed = true;
    return { ...(source as JsonObject), head };
  });
  return changed ? { ...request, sources } : request;
}

/** Encodes a value of which little has changed: the rest is linked to as it is. */
async function encodeChanged(
  repository: Repository,
  sink: ObjectSink,
  reader: ObjectReader,
  { part, link }: { readonly part: RootPart; readonly link: Link },
  before: JsonValue,
  cleaned: JsonValue,
): Promise<Link> {
  const { statePolicy, context } = repository;
  const policy = part === "state" ? statePolicy : null;
  const value = normalize(cleaned, {
    previous: before,
    maxBytes: context.limits.stateMaxBytes,
    what: formatPointer([part]),
  });
  if (link.type === "blob") return toLink(sink, encodeValue(sink, value, policy));
  const drafts = createDraftContext(reader, sink);
  const draft = await reconcile(drafts, await drafts.open(link), before, value);
  return toLink(sink, await draft.encode(policy));
}
