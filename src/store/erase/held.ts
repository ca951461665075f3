import type { ObjectId } from "../../core/ids.js";
import { AUDIT, HOLDS } from "../../refs/names.js";
import { Marker } from "../gc/marker.js";
import type { Repository } from "../repository.js";

/** What must stay: what holds reach, hold by hold, and the records of the audit. */
export class Kept {
  private constructor(
    private readonly holds: readonly { readonly hold: string; readonly marker: Marker }[],
    private readonly audit: Marker,
  ) {}

  /** @throws AgstateError `MISSING_OBJECT`, `CORRUPT_OBJECT` when what is held is damaged: then nobody knows what it is */
  static async read({ storage, workflow }: Repository): Promise<Kept> {
    const marker = async (ids: readonly ObjectId[]) => {
      const made = new Marker(storage, workflow, undefined);
      await made.mark(ids);
      return made;
    };
    const holds: { hold: string; marker: Marker }[] = [];
    for (const { name, id } of await storage.readRefs(workflow, { prefix: HOLDS })) {
      if (id !== null) holds.push({ hold: name.slice(HOLDS.length), marker: await marker([id]) });
    }
    const audits = await storage.readRefs(workflow, { prefix: AUDIT });
    const audit = await marker(audits.flatMap(({ id }) => (id === null ? [] : [id])));
    return new Kept(holds, audit);
  }

  isHeld(id: ObjectId): boolean {
    return this.holds.some(({ marker }) => marker.has(id));
  }

  isAudit(id: ObjectId): boolean {
    return this.audit.has(id);
  }

  /** How many of the ids each hold keeps, for those that keep some. */
  count(ids: readonly ObjectId[]): { hold: string; objects: number }[] {
    return this.holds
      .map(({ hold, marker }) => ({ hold, objects: ids.filter((id) => marker.has(id)).length }))
      .filter(({ objects }) => objects > 0);
  }

  get names(): string[] {
    return this.holds.map(({ hold }) => hold);
  }
}
