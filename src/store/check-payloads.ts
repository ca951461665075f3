import { isAgstateError } from "../core/errors.js";
import type { ObjectId } from "../core/ids.js";
import { type Pointer, readPointer } from "../objects/pointer.js";
import type { ObjectRecord } from "../storage/port.js";
import type { PlacedParts } from "./placed.js";

/** Pointers that were looked for in their regions. */
export interface CheckedPayloads {
  readonly checked: number;
  /** Regions that could not be had, whose payloads were not looked for. */
  readonly unreached: readonly string[];
}

const PAGE = 1000;

/** Looks whether each pointer of a workflow can be read, and what it stands for is there. */
export class PayloadCheck {
  private readonly pointers = new Map<string, { readonly id: ObjectId; readonly hash: string }[]>();

  constructor(private readonly problem: (id: ObjectId, detail: string) => void) {}

  /** Takes a pointer in, or tells that it is none. */
  add(record: ObjectRecord): void {
    let pointer: Pointer;
    try {
      pointer = readPointer(Buffer.from(record.body).toString("utf8"), record.id);
    } catch (error) {
      if (!isAgstateError(error, "CORRUPT_OBJECT")) throw error;
      this.problem(record.id, error.message);
      return;
    }
    const { region, hash } = pointer;
    const others = this.pointers.get(region) ?? [];
    this.pointers.set(region, others);
    others.push({ id: record.id, hash });
  }

  /** @param missing is told of each whose region does not have what it stands for */
  async run(
    placed: PlacedParts,
    workflow: string,
    missing: (id: ObjectId, region: string) => void,
  ): Promise<CheckedPayloads> {
    let checked = 0;
    const unreached: string[] = [];
    for (const [region, pointers] of this.pointers) {
      for (let i = 0; i < pointers.length; i += PAGE) {
        const page = pointers.slice(i, i + PAGE);
        const hashes = page.map(({ hash }) => hash);
        const found = (await placed.foreign?.read(workflow, region, hashes)) ?? null;
        if (found === null) {
          unreached.push(region);
          break;
        }
        checked += page.length;
        for (const { id, hash } of page) if (!found.has(hash)) missing(id, region);
      }
    }
    return { checked, unreached };
  }
}
