import { type AgstateError, isAgstateError } from "../../core/errors.js";
import type { Storage } from "../../storage/port.js";
import type { ForeignRegions } from "../foreign.js";
import { CopyGuard } from "../guard/guard.js";
import { KnownStrings } from "../guard/known-strings.js";
import { copyRefused } from "../guard/refusal.js";
import { checkCopies, type ForeignSurroundings, foreignStorage } from "./foreign-storage.js";
import type { PayloadStore } from "./payloads.js";

/** What the regions that were opened together know of each other's payloads. */
export class ForeignPayloads {
  private readonly guard = new CopyGuard();
  /** By workflow. */
  private readonly known = new Map<string, KnownStrings>();

  constructor(
    /** The payloads in a region. @throws AgstateError what opening the region's store throws */
    private readonly payloads: (region: string) => Promise<PayloadStore>,
  ) {}

  /**
   * Refuses a text of the catalogue, which belongs to no region, where it is a copy of a payload of any.
   *
   * @throws AgstateError `RESIDENCY_REFUSED`
   */
  refuseCopy(where: string, text: string): void {
    const owner = this.guard.find(text, null);
    if (owner !== undefined) throw copyRefused(where, owner, "the catalogue", null);
  }

  /** A region's storage that knows the others. */
  around(storage: Storage, home: string): Storage {
    return foreignStorage(storage, this.surroundings(home));
  }

  private surroundings(home: string): ForeignSurroundings {
    return {
      home,
      guard: this.guard,
      known: (workflow) => this.known.get(workflow),
      payloads: this.payloads,
    };
  }

  /**
   * What a region's store can do with what belongs to the others.
   *
   * @param storage the region's own, once it is open
   */
  of(home: string, storage: () => Storage): ForeignRegions {
    return {
      home,
      guard: this.guard,
      watch: (workflow, digest) => {
        const known = this.known.get(workflow) ?? new KnownStrings(workflow, digest);
        this.known.set(workflow, known);
        return known;
      },
      check: (batch) => checkCopies(storage(), batch, this.surroundings(home)),
      read: (workflow, region, hashes) =>
        this.reaching(region, (payloads) => payloads.read(workflow, hashes)),
      sweep: (workflow, region, before, wanted) =>
        this.reaching(region, (payloads) => payloads.sweep({ workflow, home }, before, wanted)),
    };
  }

  private async reaching<T>(
    region: string,
    work: (payloads: PayloadStore) => Promise<T>,
  ): Promise<T | null> {
    try {
      return await work(await this.payloads(region));
    } catch (error) {
      if (isOutOfReach(error)) return null;
      throw error;
    }
  }
}

/** Whether a region cannot be had, for whatever reason: its data is withheld then, and nothing else is wrong. */
function isOutOfReach(error: unknown): error is AgstateError {
  return isAgstateError(
    error,
    "REGION_UNKNOWN",
    "REGION_REFUSED",
    "STORE_UNAVAILABLE",
    "STORE_NOT_FOUND",
    "STORE_MISMATCH",
    "STORE_BUSY",
  );
}
