import { AgstateError } from "../core/errors.js";
import type { ObjectId } from "../core/ids.js";
import type { JsonValue } from "../core/json.js";
import { quoteForMessage } from "../core/names.js";
import type { WithheldNote } from "../core/withheld.js";
import type { WorkflowKeys } from "../keys/workflow-keys.js";
import { canonicalText } from "../objects/canonical.js";
import type { PlacedPart } from "../objects/data-policy.js";
import { type Elsewhere, type Pointer, pointerText, readPointer } from "../objects/pointer.js";
import type { Resolver, Seal } from "../objects/sealing.js";
import type { PointedTo } from "../objects/sink.js";
import type { ForeignRegions, PayloadBody } from "../residency/foreign.js";
import { type KnownStrings, stringHashes } from "../residency/guard/known-strings.js";
import type { PlacedPhases } from "../steps/phases.js";
import { ENCODING, type ObjectRecord } from "../storage/port.js";
import { phasesOf, regionsOf } from "./placement.js";

/** The parts of a workflow that belong to other regions, and what can be done with them. */
export class PlacedParts implements Resolver {
  readonly phases: PlacedPhases;
  readonly regions: readonly string[];
  private readonly known: KnownStrings | undefined;

  constructor(
    private readonly keys: WorkflowKeys,
    placement: readonly PlacedPart[],
    /** Undefined where the store was not opened through regions. */
    readonly foreign: ForeignRegions | undefined,
  ) {
    this.phases = phasesOf(placement);
    this.regions = regionsOf(placement);
    this.known = foreign?.watch(keys.workflow, (text) => keys.digest(text));
  }

  /**
   * Whoever cannot send a payload to its region must not write it here.
   *
   * @throws AgstateError `REGION_REFUSED`
   */
  refuseUnlessWritable(): void {
    if (this.foreign !== undefined) return;
    const { workflow } = this.keys;
    throw new AgstateError(
      "REGION_REFUSED",
      `workflow ${quoteForMessage(workflow)} has parts in ${this.regions.join(", ")}; write it through regions (openRegions, or --regions FILE), which send them there`,
      { workflow, regions: this.regions },
    );
  }

  /**
   * Makes the pointer that stands for a value of another region.
   *
   * @param text the value's canonical text
   * @param seal what seals the payload, in an encrypted workflow
   * @throws AgstateError `REGION_REFUSED`, `KEY_UNAVAILABLE`, `ERASED`
   */
  pointTo({ region, classification }: Elsewhere, text: string, seal: Seal): PointedTo {
    this.refuseUnlessWritable();
    const { keys } = this;
    const value = JSON.parse(text) as JsonValue;
    const hash = this.hashOf(text);
    const strings = stringHashes((given) => keys.digest(given), value);
    const pointer = { region, classification, hash, strings };
    const owner = { region, hash, workflow: keys.workflow };
    if (this.foreign?.guard.addNew(owner, value)) this.known?.learn(pointer);
    const sealed =
      keys.keyed === "payloads" ? { sealed: seal.seal(text).body.toString("base64") } : {};
    return { body: pointerText(pointer), foreign: { region, hash, text, ...sealed } };
  }

  private hashOf(text: string): string {
    return this.keys.digest(`payload\0${text}`);
  }

  /** Those whose region, or key, cannot be had, or that are there no more, are left out. */
  async resolve(
    records: readonly ObjectRecord[],
  ): Promise<ReadonlyMap<ObjectId, string | WithheldNote>> {
    const pointers = records.map(({ id, body }) => ({
      id,
      ...readPointer(Buffer.from(body).toString("utf8"), id),
    }));
    const bodies = await this.read(pointers);
    const bodyOf = ({ region, hash }: Pointer) => bodies.get(region)?.get(hash);
    const sealed = pointers.flatMap((pointer) => sealedRecord(pointer.id, bodyOf(pointer)) ?? []);
    await this.keys.sealing.opener.prepare?.(sealed);
    const texts = new Map<ObjectId, string | WithheldNote>();
    for (const pointer of pointers) {
      this.known?.learn(pointer);
      const { id, region, hash } = pointer;
      const body = bodyOf(pointer);
      if (body === undefined) continue;
      const text = this.textOf(id, body);
      if (typeof text !== "string") {
        texts.set(id, text);
        continue;
      }
      if (this.hashOf(text) !== hash) throw notWhatWasPointedTo(id, region);
      this.foreign?.guard.add({ region, hash, workflow: this.keys.workflow }, JSON.parse(text));
      texts.set(id, text);
    }
    return texts;
  }

  /** Reads payloads by region and hash, in one call to each region; null of a region that cannot be had. */
  private async read(
    pointers: readonly Pointer[],
  ): Promise<ReadonlyMap<string, ReadonlyMap<string, PayloadBody> | null>> {
    const found = new Map<string, ReadonlyMap<string, PayloadBody> | null>();
    const { foreign, keys } = this;
    if (foreign === undefined || keys.withheld !== null) return found;
    const regions = [...new Set(pointers.map(({ region }) => region))];
    await Promise.all(
      regions.map(async (region) => {
        const hashes = pointers.filter((one) => one.region === region).map(({ hash }) => hash);
        found.set(region, await foreign.read(keys.workflow, region, hashes));
      }),
    );
    return found;
  }

  private textOf(id: ObjectId, body: PayloadBody): string | WithheldNote {
    const record = sealedRecord(id, body);
    if (record === undefined) return canonicalText((body as { value: JsonValue }).value);
    const opened = this.keys.sealing.opener.open(record);
    return typeof opened === "object" && "text" in opened ? opened.text : opened;
  }
}

/** A payload as the object that it would be here; undefined of one that is not sealed. */
function sealedRecord(id: ObjectId, body: PayloadBody | undefined): ObjectRecord | undefined {
  if (body === undefined || "value" in body) return undefined;
  const bytes = Buffer.from(body.sealed, "base64");
  return { id, type: "blob", encoding: ENCODING.encrypted, body: bytes };
}

/** What a workflow declares of parts in other regions; null when all of it is in one. */
export function placedParts(
  keys: WorkflowKeys,
  placement: readonly PlacedPart[],
  foreign: ForeignRegions | undefined,
): PlacedParts | null {
  return placement.length === 0 ? null : new PlacedParts(keys, placement, foreign);
}

function notWhatWasPointedTo(id: ObjectId, region: string): AgstateError {
  return new AgstateError(
    "CORRUPT_OBJECT",
    `what pointer ${id} stands for in region ${region} is not what it was: it was changed, or comes from another workflow; restore that region's store`,
    { id, region },
  );
}

/** A workflow has payloads in a store, and lives in another region. */
export function livesElsewhere(workflow: string, home: string): AgstateError {
  return new AgstateError(
    "WORKFLOW_NOT_FOUND",
    `workflow ${quoteForMessage(workflow)} lives in region ${home}, and only payloads of it are in this store; open it through regions`,
    { workflow, home },
  );
}
