import { AgstateError, isAgstateError } from "../../core/errors.js";
import type { ObjectId } from "../../core/ids.js";
import type { JsonValue } from "../../core/json.js";
import { digestText } from "../../objects/hash.js";
import { movedRow } from "../../refs/ref-store.js";
import type { RefRow } from "../../storage/port.js";
import type { Repository } from "../../store/repository.js";
import type { Store } from "../../store.js";
import {
  type Placement,
  parsePlacement,
  parseRegionRecord,
  type RegionRecord,
} from "../placement.js";
import { type NewRecord, newRecord, readRecords } from "./records.js";

/** The workflow that the catalogue is kept in. */
export const CATALOGUE_WORKFLOW = "agstate-catalogue";

/** A ref for each workflow, named by a digest: an id may hold what a ref's name may not. */
const PLACEMENTS = "refs/placements/";
const REGIONS = "refs/regions/";

/** How many placements one call reads. */
const PAGE = 500;

/** How many placements are remembered: of what they say only the classification ever changes. */
const REMEMBERED_MAX = 10_000;

/** Which region each workflow lives in, kept as commits of a workflow of its own. */
export class Catalogue {
  private repository: Repository | undefined;
  private readonly placed = new Map<string, Placement>();

  constructor(private readonly store: Store) {}

  /**
   * Where a workflow lives; undefined when it was never placed.
   *
   * @param fresh whether to ask the store, whatever is remembered
   */
  async find(workflow: string, fresh = false): Promise<Placement | undefined> {
    const known = this.placed.get(workflow);
    if (known !== undefined && !fresh) return known;
    const repository = await this.open();
    const row = await repository?.refs.row(placementRef(workflow));
    if (repository === undefined || row === undefined) return undefined;
    const [placement] = await readRecords(repository, [row], parsePlacement);
    return this.remember(placement as Placement, workflow);
  }

  /** All placements, in the order of a digest of the workflows' ids. */
  async *all(): AsyncGenerator<Placement, void, undefined> {
    const repository = await this.open();
    const rows = (await repository?.refs.list(PLACEMENTS)) ?? [];
    for (let i = 0; i < rows.length; i += PAGE) {
      yield* await readRecords(repository as Repository, rows.slice(i, i + PAGE), parsePlacement);
    }
  }

  /** Which stores the regions led to when they were first used. */
  async regions(): Promise<RegionRecord[]> {
    const repository = await this.open();
    if (repository === undefined) return [];
    return readRecords(repository, await repository.refs.list(REGIONS), parseRegionRecord);
  }

  /**
   * Places a workflow, and keeps with it which store its region leads to, in one write. Of several that place one
   * id at once the first counts.
   *
   * @returns where the workflow lives: as given, or where somebody else was faster
   */
  async place(placement: Placement): Promise<Placement> {
    const { workflow, region, storeId } = placement;
    const repository = (await this.open()) ?? (await this.make());
    for (;;) {
      const row = await repository.refs.row(REGIONS + region);
      const record: NewRecord = newRecord(
        repository,
        placementRef(workflow),
        placement as unknown as JsonValue,
        `Place ${workflow} in ${region}`,
      );
      const records =
        row === undefined
          ? [newRecord(repository, REGIONS + region, { region, storeId }, `Meet region ${region}`)]
          : [];
      records.push(record);
      const answers = await repository.refs.apply({
        updates: records.map(({ update }) => update),
        objects: records.flatMap(({ objects }) => objects.map((object) => object.record)),
      });
      const answer = answers[records.length - 1];
      if (answer?.outcome === "moved" || answer?.outcome === "landed") {
        return this.remember(placement, workflow);
      }
      if (answer?.outcome === "conflict") break;
      // Somebody else met the region meanwhile.
      if (answers[0]?.outcome !== "conflict") movedRow(record.update, answer);
    }
    return (await this.find(workflow)) as Placement;
  }

  /**
   * Says otherwise of a workflow that was placed.
   *
   * @throws AgstateError `REF_CONFLICT` when somebody else does at the same time
   */
  async replace(placement: Placement): Promise<void> {
    const { workflow } = placement;
    const repository = (await this.open()) as Repository;
    const ref = placementRef(workflow);
    const row = (await repository.refs.row(ref)) as RefRow;
    const says = `Declare ${workflow} ${placement.classification}`;
    const value = placement as unknown as JsonValue;
    const { update, objects } = newRecord(repository, ref, value, says);
    const moved = {
      ...update,
      expect: { kind: "id", id: row.id as ObjectId, seq: row.seq },
    } as const;
    const [answer] = await repository.refs.apply({
      updates: [moved],
      objects: objects.map((object) => object.record),
    });
    movedRow(moved, answer);
    this.remember(placement, workflow);
  }

  private remember(placement: Placement, workflow: string): Placement {
    if (placement.workflow !== workflow) {
      throw new AgstateError(
        "STORE_DAMAGED",
        `the catalogue tells of ${JSON.stringify(placement.workflow)} where it should of ${JSON.stringify(workflow)}; restore it`,
        { workflow, found: placement.workflow },
      );
    }
    if (this.placed.size >= REMEMBERED_MAX) this.placed.clear();
    this.placed.set(workflow, placement);
    return placement;
  }

  /** The workflow that it is kept in; undefined before the first placement. */
  repositoryIfMade(): Promise<Repository | undefined> {
    return this.open();
  }

  /** The catalogue's workflow; undefined before the first placement. */
  private async open(): Promise<Repository | undefined> {
    if (this.repository !== undefined) return this.repository;
    try {
      this.repository = (await this.store.workflow(CATALOGUE_WORKFLOW)).internals;
    } catch (error) {
      if (!isAgstateError(error, "WORKFLOW_NOT_FOUND")) throw error;
    }
    return this.repository;
  }

  private async make(): Promise<Repository> {
    try {
      this.repository = (await this.store.createWorkflow(CATALOGUE_WORKFLOW)).internals;
      return this.repository;
    } catch (error) {
      if (!isAgstateError(error, "WORKFLOW_EXISTS")) throw error;
    }
    return (await this.open()) as Repository;
  }
}

function placementRef(workflow: string): string {
  return `${PLACEMENTS}w-${digestText(workflow)}`;
}
