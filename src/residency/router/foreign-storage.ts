import { forward } from "../../storage/decorators/forward.js";
import type {
  ForeignPayloadText,
  ObjectRecord,
  Storage,
  StoredObject,
  WriteBatch,
} from "../../storage/port.js";
import { textsOfBatch } from "../guard/batch.js";
import type { CopyGuard, ForeignPayload } from "../guard/guard.js";
import type { KnownStrings } from "../guard/known-strings.js";
import { copyRefused } from "../guard/refusal.js";
import { HomeTexts } from "./home-texts.js";
import type { PayloadStore } from "./payloads.js";

/** What stands around a region's storage. */
export interface ForeignSurroundings {
  /** The storage's region. */
  readonly home: string;
  readonly guard: CopyGuard;
  /** What a workflow's pointers tell of its payloads; undefined of one whose parts are all in one region. */
  known(workflow: string): KnownStrings | undefined;
  /**
   * The payloads in another region.
   *
   * @throws AgstateError `REGION_UNKNOWN`, `STORE_UNAVAILABLE`, and what opening the region's store throws
   */
  payloads(region: string): Promise<PayloadStore>;
}

/**
 * A region's storage that writes payloads of other regions to these, and refuses what has a copy of one.
 *
 * The one place through which all goes that is written into a region: first the whole write is held against the
 * payloads that are known, then payloads are written where they belong, and only when they are there to stay
 * the write is, with pointers. When that fails, the payloads are orphans, which a sweep removes.
 *
 * @throws AgstateError `RESIDENCY_REFUSED`, and what the region of a payload raises: nothing is written then
 */
export function foreignStorage(storage: Storage, around: ForeignSurroundings): Storage {
  return {
    ...forward(storage),
    async write(batch) {
      await checkCopies(storage, batch, around);
      const foreign = foreignOf(batch);
      if (foreign.length > 0) await putAll(batch.workflow, foreign, around);
      return storage.write(asStored(batch));
    },
  };
}

function foreignOf({ objects }: WriteBatch): ForeignPayloadText[] {
  return objects.flatMap((object) => object.foreign ?? []);
}

/**
 * Holds a write against the payloads that are known.
 *
 * @throws AgstateError `RESIDENCY_REFUSED`
 */
export async function checkCopies(
  storage: Storage,
  batch: WriteBatch,
  around: ForeignSurroundings,
): Promise<void> {
  const { workflow } = batch;
  const foreign = foreignOf(batch);
  const known = around.known(workflow);
  if (foreign.length === 0 && known === undefined && around.guard.isEmpty) return;
  // Whatever becomes of the write, whoever asked for it has the payloads, and may copy them by this very write.
  for (const { region, hash, text } of foreign) {
    around.guard.addNew({ region, hash, workflow }, JSON.parse(text));
  }
  await check(storage, batch, around, known);
}

/** @throws AgstateError `RESIDENCY_REFUSED` */
async function check(
  storage: Storage,
  batch: WriteBatch,
  { guard, home }: ForeignSurroundings,
  known: KnownStrings | undefined,
): Promise<void> {
  const find = (text: string, into: string): ForeignPayload | undefined =>
    guard.find(text, into) ?? known?.find(text, into);
  let homes: HomeTexts | undefined;
  for (const { where, text, into, parents } of textsOfBatch(batch)) {
    const to = into ?? home;
    const owner = find(text, to);
    if (owner === undefined) continue;
    // What stood there before was not copied by this write.
    homes ??= new HomeTexts(storage, batch.workflow);
    if (into === null && (await homes.has(text, parents))) continue;
    const actor = batch.moves[0]?.log.actor;
    const by = actor === undefined || find(actor, home) !== undefined ? null : actor;
    throw copyRefused(where, owner, to, by);
  }
}

async function putAll(
  workflow: string,
  foreign: readonly ForeignPayloadText[],
  { home, payloads }: ForeignSurroundings,
): Promise<void> {
  const regions = new Set(foreign.map(({ region }) => region));
  const stores = await Promise.all(
    [...regions].map(async (region) => [region, await payloads(region)] as const),
  );
  await Promise.all(
    stores.map(([region, store]) =>
      store.put(
        { workflow, home },
        foreign.filter((each) => each.region === region),
      ),
    ),
  );
}

/** The write without what was only to be looked at, or to go elsewhere. */
function asStored(batch: WriteBatch): WriteBatch {
  const commits = batch.moves.flatMap((move) => move.commits);
  const isPlain = [...batch.objects, ...commits.flatMap(({ inline }) => inline)].every(
    carriesNothing,
  );
  if (isPlain) return batch;
  return {
    ...batch,
    objects: batch.objects.map(bare),
    moves: batch.moves.map((move) => ({
      ...move,
      commits: move.commits.map((commit) => ({ ...commit, inline: commit.inline.map(bare) })),
    })),
  };
}

function carriesNothing(object: StoredObject): boolean {
  return "tombstone" in object || (object.foreign === undefined && object.clear === undefined);
}

function bare<Stored extends StoredObject>(object: Stored): Stored {
  if (carriesNothing(object)) return object;
  const { foreign: _, clear: __, ...record } = object as ObjectRecord;
  return record as Stored;
}
