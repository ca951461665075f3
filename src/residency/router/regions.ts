import type { Classification } from "../../core/classification.js";
import { AgstateError, isAgstateError } from "../../core/errors.js";
import { checkIdentity, quoteForMessage } from "../../core/names.js";
import type { Environment } from "../../core/variables.js";
import { compileIsolation } from "../../objects/isolation.js";
import type { Storage } from "../../storage/port.js";
import { recordRefused } from "../../store/audit/refused.js";
import { checkDeclaration } from "../../store/declaration.js";
import type { DeclarationChange, RedeclareOptions } from "../../store/redeclare.js";
import type { CreateWorkflowOptions, WorkflowInfo } from "../../store/types.js";
import type { Workflow } from "../../store/workflow.js";
import { type OpenStoreOptions, randomHex, type Store } from "../../store.js";
import type { CheckedRegion, CheckedRegions, RegionsConfig } from "../config.js";
import { refuseClassification, regionNamed } from "../errors.js";
import { readRegions } from "../file.js";
import type { Placement } from "../placement.js";
import { CATALOGUE_WORKFLOW, Catalogue } from "./catalogue.js";
import { withDefaults } from "./defaults.js";
import { ForeignPayloads } from "./foreign-regions.js";
import { checkPinned, checkRegionIdentity, type OpenedStore, openNamed } from "./open.js";
import { PayloadStore } from "./payloads.js";
import {
  existsInRegion,
  notPlaced,
  placedElsewhere,
  reservedId,
  unfinished,
  unlikeCatalogue,
} from "./refusals.js";

export interface OpenRegionsOptions
  extends Pick<
    OpenStoreOptions,
    "limits" | "resolvers" | "schema" | "stepHooks" | "governance" | "keys" | "tracing"
  > {
  /** What `${NAME}` in a URL stands for, such as `process.env`; default nothing. */
  readonly environment?: Environment;
  /** Puts a decorator of the caller's around each store's storage; the region is null for the catalogue's. */
  readonly wrap?: (storage: Storage, region: string | null) => Storage;
}

/** A region's, or the catalogue's, store as it is now. */
export interface StoreStatus {
  /** The URL of the file, without password and with its variables as names. */
  readonly url: string;
  /** Null when it could not be opened, or is not the one that it should be. */
  readonly storeId: string | null;
  /** Why it cannot be used; null when it can. */
  readonly problem: AgstateError | null;
}

export interface RegionStatus extends StoreStatus {
  readonly name: string;
  readonly classifications: readonly Classification[];
}

/**
 * Reads where workflows may live, from a JSON file or as a value. No store is opened before it is needed.
 *
 * @throws AgstateError `INVALID_ARGUMENT`, `INVALID_VALUE`, `LIMIT_EXCEEDED`
 */
export async function openRegions(
  source: string | RegionsConfig,
  options: OpenRegionsOptions = {},
): Promise<Regions> {
  return new Regions(await readRegions(source, options.environment ?? {}), options);
}

/**
 * Stores by region: finds a workflow's store by the catalogue, which tells where each lives for life.
 *
 * Every doubt is an error, and then nothing has been written anywhere: a region that is not known, not reachable
 * or not the one that it was, a classification that it may not hold, a workflow that the catalogue does not know.
 */
export class Regions {
  private readonly stores = new Map<string, Promise<OpenedStore>>();
  private opened: Promise<{ readonly catalogue: Catalogue; readonly at: OpenedStore }> | undefined;
  private closed = false;
  /** The regions' storages, by name, without what keeps payloads apart. */
  private readonly storages = new Map<string, Storage>();
  private readonly payloads = new WeakMap<Storage, PayloadStore>();
  private readonly foreign = new ForeignPayloads((region) => this.payloadsIn(region));

  /** @internal Use `openRegions`. */
  constructor(
    private readonly config: CheckedRegions,
    private readonly options: OpenRegionsOptions,
  ) {}

  /**
   * Creates a workflow in the region that it declares: its place in the catalogue first, then the workflow. What
   * a crash between the two leaves is a place without a workflow, where the next call with this id creates it.
   *
   * @throws AgstateError `REGION_UNKNOWN`, `REGION_REFUSED`, `WORKFLOW_EXISTS`, `STORE_MISMATCH`, `STORE_NOT_FOUND`,
   *   `STORE_UNAVAILABLE`, and what `store.createWorkflow` throws
   */
  async createWorkflow(id: string, given: CreateWorkflowOptions = {}): Promise<Workflow> {
    checkIdentity("workflow id", id);
    if (id === CATALOGUE_WORKFLOW) throw reservedId(id);
    const { options, defaulted } = withDefaults(given, this.config.defaults);
    const region = regionNamed(
      this.config,
      options.storageRegion,
      `workflow ${quoteForMessage(id)}`,
    );
    const { classification, isolation, subjects, placement } = checkDeclaration(
      options,
      region.name,
    );
    compileIsolation(isolation, subjects, placement);
    refuseClassification(region, classification, this.config);
    await this.refuseCopy(id);
    const elsewhere = placement.map((part) => {
      const whose = `the placement of workflow ${quoteForMessage(id)}`;
      const other = regionNamed(this.config, part.region, whose);
      refuseClassification(other, part.classification, this.config);
      return other;
    });
    const wanted = { workflow: id, region: region.name, classification };

    const catalogue = await this.catalogueOf();
    const before = await catalogue.find(id);
    if (before !== undefined) refuseOther(before, wanted);
    const { store, identity } = await this.open(region, catalogue);
    if (before !== undefined) refuseSwapped(before, identity.storeId);
    for (const other of elsewhere) await this.open(other, catalogue);
    const land = await store.prepareWorkflow(id, options, defaulted);
    const there = await infoOf(store, id);
    if (there !== undefined) throw existsInRegion(id, region.name, before !== undefined);
    if (before === undefined) {
      const { storeId } = identity;
      const placed = await catalogue.place({ ...wanted, storeId });
      refuseOther(placed, wanted);
      refuseSwapped(placed, storeId);
    }
    return land();
  }

  /**
   * Opens a workflow in the region where it lives.
   *
   * @throws AgstateError `WORKFLOW_NOT_FOUND`, `REGION_UNKNOWN`, `REGION_REFUSED`, `STORE_MISMATCH`, `STORE_NOT_FOUND`,
   *   `STORE_UNAVAILABLE`
   */
  async workflow(id: string): Promise<Workflow> {
    checkIdentity("workflow id", id);
    const catalogue = await this.catalogueOf();
    const placement = await catalogue.find(id);
    if (placement === undefined) throw notPlaced(id);
    const whose = `the place of workflow ${quoteForMessage(id)} in the catalogue`;
    const region = regionNamed(this.config, placement.region, whose);
    refuseClassification(region, placement.classification, this.config);
    const { store, identity } = await this.open(region, catalogue);
    refuseSwapped(placement, identity.storeId);
    const workflow = await orMissing(store.workflow(id));
    if (workflow === undefined) throw unfinished(placement);
    if (workflow.info.classification !== placement.classification) {
      // Somebody may have changed it since it was remembered.
      const fresh = (await catalogue.find(id, true)) ?? placement;
      refuseClassification(region, fresh.classification, this.config);
      refuseUnlike(fresh, workflow.info);
    }
    refuseUnlike({ ...placement, classification: workflow.info.classification }, workflow.info);
    return workflow;
  }

  /**
   * Changes what a workflow declares, in its region's store and then in the catalogue. Until both are done nobody is
   * served it; the call made again ends what was cut off.
   *
   * @throws AgstateError `REGION_REFUSED` when the region may not hold what it becomes, and what `workflow` and
   *   `workflow.redeclare` throw
   */
  async redeclare(
    id: string,
    change: DeclarationChange,
    options: RedeclareOptions,
  ): Promise<WorkflowInfo> {
    checkIdentity("workflow id", id);
    const catalogue = await this.catalogueOf();
    const placement = await catalogue.find(id, true);
    if (placement === undefined) throw notPlaced(id);
    const whose = `the place of workflow ${quoteForMessage(id)} in the catalogue`;
    const region = regionNamed(this.config, placement.region, whose);
    if (change.classification !== undefined) {
      refuseClassification(region, change.classification, this.config);
    }
    const { store, identity } = await this.open(region, catalogue);
    refuseSwapped(placement, identity.storeId);
    const info = await (await store.workflow(id)).redeclare(change, options);
    const { classification } = info;
    if (classification !== placement.classification) {
      await catalogue.replace({ ...placement, classification });
    }
    return info;
  }

  /**
   * Enters a workflow that was made in a region's store without the catalogue; entering it again does nothing.
   *
   * @throws AgstateError `WORKFLOW_NOT_FOUND`, `WORKFLOW_EXISTS` when it lives in another region, and what `workflow` throws
   */
  async adopt(id: string, regionName: string): Promise<Placement> {
    checkIdentity("workflow id", id);
    if (id === CATALOGUE_WORKFLOW) throw reservedId(id);
    const region = regionNamed(this.config, regionName, `adopting workflow ${quoteForMessage(id)}`);
    await this.refuseCopy(id);
    const catalogue = await this.catalogueOf();
    const before = await catalogue.find(id);
    const { store, identity } = await this.open(region, catalogue);
    const { info } = await store.workflow(id);
    const { classification } = info;
    const { storeId } = identity;
    const wanted = { workflow: id, region: region.name, classification, storeId };
    refuseClassification(region, classification, this.config);
    refuseUnlike(wanted, info);
    const placed = before ?? (await catalogue.place(wanted));
    refuseOther(placed, wanted);
    refuseSwapped(placed, storeId);
    return placed;
  }

  /** Lists where workflows live, by the catalogue alone: no region's store is asked. */
  async *workflows(): AsyncGenerator<Placement, void, undefined> {
    yield* (await this.catalogueOf()).all();
  }

  /**
   * The store of a region, after its identity was checked. A workflow that is created in it directly is not in the
   * catalogue, and not served until it is adopted.
   *
   * @throws AgstateError `REGION_UNKNOWN`, `STORE_MISMATCH`, `STORE_NOT_FOUND`, `STORE_UNAVAILABLE`
   */
  async store(regionName: string): Promise<Store> {
    const region = regionNamed(this.config, regionName, "the call");
    return (await this.open(region, await this.catalogueOf())).store;
  }

  /** Opens every region's store and tells how it is; writes nothing. */
  async regions(): Promise<RegionStatus[]> {
    return Promise.all(
      [...this.config.regions.values()].map(async (region) => ({
        name: region.name,
        classifications: region.classifications,
        ...(await statusOf(region.shown, async () => this.open(region, await this.catalogueOf()))),
      })),
    );
  }

  /** Opens the catalogue's store and tells how it is; writes nothing. */
  catalogue(): Promise<StoreStatus> {
    return statusOf(this.config.catalogue.shown, async () => (await this.openCatalogue()).at);
  }

  /** Closes the stores that were opened; calling it again does nothing. */
  async close(): Promise<void> {
    this.closed = true;
    const opened = [...this.stores.values(), this.opened?.then(({ at }) => at)];
    this.stores.clear();
    this.opened = undefined;
    const stores = await Promise.allSettled(opened);
    const closings = await Promise.allSettled(
      stores.map((one) => (one.status === "fulfilled" ? one.value?.store.close() : undefined)),
    );
    for (const closing of closings) if (closing.status === "rejected") throw closing.reason;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /**
   * Refuses an id that is a copy of a payload: the catalogue, which belongs to no region, would hold it.
   *
   * @throws AgstateError `RESIDENCY_REFUSED`
   */
  private async refuseCopy(id: string): Promise<void> {
    try {
      this.foreign.refuseCopy("workflow id", id);
    } catch (error) {
      const catalogue = await (await this.catalogueOf()).repositoryIfMade();
      if (catalogue !== undefined) await recordRefused(catalogue, error);
      throw error;
    }
  }

  private async catalogueOf(): Promise<Catalogue> {
    return (await this.openCatalogue()).catalogue;
  }

  private openCatalogue() {
    this.refuseClosed();
    const { catalogue: named } = this.config;
    this.opened ??= openNamed(
      named,
      "the catalogue of regions",
      { catalogue: true },
      { ...this.storeOptions(null), stepHooks: [], schema: undefined },
      ({ storeId }) => checkPinned(named, storeId),
    )
      .then((at) => ({ at, catalogue: new Catalogue(at.store) }))
      .catch((error: unknown) => {
        // Whoever asks next may find it there again.
        this.opened = undefined;
        throw error;
      });
    return this.opened;
  }

  private open(region: CheckedRegion, catalogue: Catalogue): Promise<OpenedStore> {
    this.refuseClosed();
    const { name } = region;
    let opening = this.stores.get(name);
    if (opening === undefined) {
      opening = openNamed(
        region,
        `region ${name}`,
        { region: name },
        this.storeOptions(name),
        async (identity) =>
          checkRegionIdentity(region, this.config, await catalogue.regions(), identity),
      ).catch((error: unknown) => {
        this.stores.delete(name);
        throw error;
      });
      this.stores.set(name, opening);
    }
    return opening;
  }

  private storeOptions(region: string | null): OpenStoreOptions {
    const { environment: _, wrap: wrapped, ...rest } = this.options;
    const wrap = (storage: Storage) => {
      const inner = wrapped?.(storage, region) ?? storage;
      if (region === null) return inner;
      this.storages.set(region, inner);
      return this.foreign.around(inner, region);
    };
    return {
      ...rest,
      wrap,
      ...(region !== null && {
        foreign: this.foreign.of(region, () => this.storages.get(region) as Storage),
      }),
    };
  }

  /** @throws AgstateError `REGION_UNKNOWN`, and what opening the region's store throws */
  private async payloadsIn(name: string): Promise<PayloadStore> {
    const region = regionNamed(this.config, name, "a part of the workflow");
    await this.open(region, await this.catalogueOf());
    const storage = this.storages.get(name) as Storage;
    let payloads = this.payloads.get(storage);
    if (payloads === undefined) {
      payloads = new PayloadStore(storage, name, { now: () => Date.now(), randomHex });
      this.payloads.set(storage, payloads);
    }
    return payloads;
  }

  private refuseClosed(): void {
    if (!this.closed) return;
    throw new AgstateError("STORE_CLOSED", "the regions were closed; open them again", {});
  }
}

/** What a workflow's place must be like. */
type Wanted = Omit<Placement, "storeId">;

/** @throws AgstateError `WORKFLOW_EXISTS`, `REGION_REFUSED` */
function refuseOther(placed: Placement, wanted: Wanted): void {
  if (placed.region !== wanted.region || placed.classification !== wanted.classification) {
    throw placedElsewhere(placed, wanted);
  }
}

/** @throws AgstateError `STORE_MISMATCH` */
function refuseSwapped({ workflow, region, storeId }: Placement, found: string): void {
  if (storeId === found) return;
  throw new AgstateError(
    "STORE_MISMATCH",
    `workflow ${quoteForMessage(workflow)} was placed in store ${storeId}, and region ${region} is store ${found} now; mend the URL in the file, or restore the store`,
    { workflow, region, storeId: found, expected: storeId },
  );
}

/** @throws AgstateError `REGION_REFUSED` */
function refuseUnlike(placement: Placement, info: WorkflowInfo): void {
  const { storageRegion, classification } = info;
  const elsewhere = storageRegion !== null && storageRegion !== placement.region;
  if (elsewhere || classification !== placement.classification) {
    throw unlikeCatalogue(placement, info);
  }
}

async function infoOf(store: Store, id: string): Promise<WorkflowInfo | undefined> {
  return (await orMissing(store.workflow(id)))?.info;
}

async function orMissing(workflow: Promise<Workflow>): Promise<Workflow | undefined> {
  try {
    return await workflow;
  } catch (error) {
    if (isAgstateError(error, "WORKFLOW_NOT_FOUND")) return undefined;
    throw error;
  }
}

async function statusOf(url: string, open: () => Promise<OpenedStore>): Promise<StoreStatus> {
  try {
    return { url, storeId: (await open()).identity.storeId, problem: null };
  } catch (error) {
    if (isAgstateError(error)) return { url, storeId: null, problem: error };
    throw error;
  }
}
