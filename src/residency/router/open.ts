import { AgstateError } from "../../core/errors.js";
import { quoteForMessage } from "../../core/names.js";
import type { StoreDescription } from "../../storage/port.js";
import { type OpenStoreOptions, openStore, type Store } from "../../store.js";
import type { CheckedRegion, CheckedRegions, NamedStore } from "../config.js";
import { inRegion } from "../errors.js";
import type { RegionRecord } from "../placement.js";

/** A store that was opened, and what it says of itself. */
export interface OpenedStore {
  readonly store: Store;
  readonly identity: StoreDescription;
}

/**
 * Opens a store that is there, and holds it against what is expected of it before anybody has it.
 *
 * @param whose such as `region eu`, for messages
 * @throws AgstateError what `openStore` throws, and what `check` does, with `whose`, without secrets
 */
export async function openNamed(
  named: NamedStore,
  whose: string,
  details: Readonly<Record<string, unknown>>,
  options: OpenStoreOptions,
  check: (identity: StoreDescription) => void | Promise<void>,
): Promise<OpenedStore> {
  let store: Store | undefined;
  try {
    store = await openStore(named.url, { ...options, create: false });
    const identity = await store.describe();
    await check(identity);
    return { store, identity };
  } catch (error) {
    await store?.close();
    throw inRegion(error, whose, details, named.secrets);
  }
}

/** @throws AgstateError `STORE_MISMATCH` */
export function checkPinned({ storeId }: NamedStore, found: string): void {
  if (storeId === undefined || storeId === found) return;
  throw new AgstateError(
    "STORE_MISMATCH",
    `the store has the id ${found}, and the file says ${storeId}: it is another one; mend the URL, or the storeId if it was replaced on purpose`,
    { storeId: found, expected: storeId },
  );
}

/**
 * Holds a region's store against its region and against the ids that are known.
 *
 * @param recorded which stores the regions led to when they were first used
 * @throws AgstateError `STORE_MISMATCH`
 */
export function checkRegionIdentity(
  region: CheckedRegion,
  { regions }: CheckedRegions,
  recorded: readonly RegionRecord[],
  identity: StoreDescription,
): void {
  const { name } = region;
  if (identity.region === null) {
    throw new AgstateError(
      "STORE_MISMATCH",
      `the store has no region, so it cannot be told from another's; make one with agstate init --region ${name}, and use it in its place`,
      { expected: name, found: null },
    );
  }
  if (identity.region !== name) {
    throw new AgstateError(
      "STORE_MISMATCH",
      `the store stands in region ${quoteForMessage(identity.region)}, not in ${name}; mend the URL in the file`,
      { expected: name, found: identity.region },
    );
  }
  checkPinned(region, identity.storeId);
  const before = recorded.find((record) => record.region === name)?.storeId;
  if (region.storeId === undefined && before !== undefined && before !== identity.storeId) {
    throw new AgstateError(
      "STORE_MISMATCH",
      `the store has the id ${identity.storeId}, and the catalogue met the region as ${before}: it is another one; mend the URL in the file`,
      { storeId: identity.storeId, expected: before },
    );
  }
  const other =
    [...regions.values()].find((one) => one !== region && one.storeId === identity.storeId)?.name ??
    recorded.find((one) => one.region !== name && one.storeId === identity.storeId)?.region;
  if (other !== undefined) {
    throw new AgstateError(
      "STORE_MISMATCH",
      `the store has the id ${identity.storeId}, which is that of region ${other}: one is a copy of the other; each region has its own store`,
      { storeId: identity.storeId, other },
    );
  }
}
