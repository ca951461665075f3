import { setTimeout as sleep } from "node:timers/promises";
import { LRUCache } from "lru-cache";
import { AgstateError } from "../../core/errors.js";
import { isJsonObject, type JsonValue } from "../../core/json.js";
import { quoteForMessage } from "../../core/names.js";
import { formatDataPolicy, parseDataPolicy } from "../../objects/data-policy.js";
import { openPending, sealPending } from "../../objects/pending.js";
import type {
  ForeignPayloadText,
  PendingRow,
  Storage,
  WorkflowRecord,
} from "../../storage/port.js";
import type { PayloadBody } from "../foreign.js";

/** Beside the history of a workflow of the same id in the payload's region, a row for each. */
const PAYLOADS = "payloads/";

/** A mark that a payload is about to be swept: the payload's hash, and the sweep's own random number. */
const SWEEPING = "sweeping/";

/** What a sweep that was killed has marked counts no more after this time. */
const MARK_MAX_MS = 10 * 60_000;

/** A sweep that stood still for so long between its mark and its end drops nothing. */
const STANDSTILL_MAX_MS = 60_000;

/** A row of an index below 0 is replaced, so that a payload that is written again is young again. */
const INDEX = -1;

/** How often a writer puts a payload anew that is being swept at this moment. */
const ATTEMPTS = 40;
const PAUSE_MAX_MS = 50;

/** How many workflows are remembered. */
const CHECKED_MAX = 10_000;

/** How many payloads one call reads, writes or sweeps. */
const PAGE = 200;

/** A payload as its row holds it. */
type StoredPayload = PayloadBody & {
  readonly home: string;
  /** When it was last written, in milliseconds since the Unix epoch. */
  readonly at: number;
};

/** The workflow whose payloads are meant, and the region where it lives. */
export interface PayloadsOf {
  readonly workflow: string;
  readonly home: string;
}

/** The payloads that a region's store holds for workflows that live in other regions. */
export class PayloadStore {
  /** Workflows whose record was found to be there for payloads. */
  private readonly checked = new LRUCache<string, true>({ max: CHECKED_MAX });

  constructor(
    private readonly storage: Storage,
    private readonly region: string,
    private readonly source: { now(): number; randomHex(bytes: number): string },
  ) {}

  /**
   * Writes payloads, each once however often it is written. When it answers they are there to stay, and young: a sweep
   * that has met them before spares them.
   *
   * @throws AgstateError `REGION_REFUSED` when a workflow of its own has the id there, and what the storage raises
   */
  async put(of: PayloadsOf, values: readonly ForeignPayloadText[]): Promise<void> {
    await this.check(of);
    const left = new Map(values.map((value) => [value.hash, value]));
    for (let attempt = 0; left.size > 0; attempt++) {
      if (attempt === ATTEMPTS) throw keepsBeingSwept(of, this.region);
      if (attempt > 0) await sleep(Math.random() * PAUSE_MAX_MS);
      const now = this.source.now();
      await this.land(
        of,
        [...left.values()].map(({ hash, text, sealed }) => {
          const body = sealed === undefined ? { value: JSON.parse(text) as JsonValue } : { sealed };
          return sealPayload(hash, { home: of.home, at: now, ...body });
        }),
      );
      // What a sweep has marked it may be about to drop, whatever was written meanwhile.
      const rows = await this.storage.readPending(
        of.workflow,
        [...left.keys()].flatMap((hash) => [PAYLOADS + hash, `${SWEEPING}${hash}/`]),
      );
      const there = new Set(rows.map(({ key }) => hashOf(key)));
      const marked = new Set(rows.map((row) => markedBy(row, now - MARK_MAX_MS)));
      for (const hash of [...left.keys()]) {
        if (there.has(hash) && !marked.has(hash)) left.delete(hash);
      }
    }
  }

  /** Reads payloads, those that are there, by hash. */
  async read(workflow: string, hashes: readonly string[]): Promise<Map<string, PayloadBody>> {
    const found = new Map<string, PayloadBody>();
    for (let i = 0; i < hashes.length; i += PAGE) {
      const page = [...new Set(hashes.slice(i, i + PAGE))].map((hash) => PAYLOADS + hash);
      for (const row of await this.storage.readPending(workflow, page)) {
        const payload = openPayload(row);
        const body = "sealed" in payload ? { sealed: payload.sealed } : { value: payload.value };
        found.set(row.key.slice(PAYLOADS.length), body);
      }
    }
    return found;
  }

  /**
   * Removes payloads that no pointer stands for any more and that were last written before a moment.
   *
   * Each is marked before it is looked at for the last time, so that a writer who puts it again at this moment either is seen, or
   * sees the mark and puts it once more.
   *
   * @param wanted the hashes that pointers at home hold, read after `before`
   * @returns how many were removed
   */
  async sweep(of: PayloadsOf, before: number, wanted: ReadonlySet<string>): Promise<number> {
    if ((await this.storage.readWorkflow(of.workflow)) === undefined) return 0;
    await this.check(of);
    const orphans: string[] = [];
    for (let after: string | null = null; ; ) {
      const page = await this.storage.scanPending(of.workflow, after, PAGE);
      for (const row of page.rows) {
        const hash = hashOf(row.key);
        if (hash === null || wanted.has(hash)) continue;
        if (openPayload(row).at < before) orphans.push(hash);
      }
      after = page.next;
      if (after === null) break;
    }
    let removed = 0;
    for (let i = 0; i < orphans.length; i += PAGE) {
      removed += await this.drop(of.workflow, orphans.slice(i, i + PAGE), before);
    }
    return removed;
  }

  private async drop(workflow: string, hashes: readonly string[], before: number): Promise<number> {
    const marked = this.source.now();
    const by = this.source.randomHex(8);
    const marks = hashes.map((hash) =>
      sealPending(`${SWEEPING}${hash}/${by}`, INDEX, { at: marked }),
    );
    await this.storage.write(batchOf(workflow, { pending: marks }));
    const rows = await this.storage.readPending(
      workflow,
      hashes.map((hash) => PAYLOADS + hash),
    );
    const isStill = this.source.now() - marked > STANDSTILL_MAX_MS;
    const old = isStill ? [] : rows.filter((row) => openPayload(row).at < before);
    const dropPending = [...marks, ...old].map(({ key }) => key);
    await this.storage.write(batchOf(workflow, { dropPending }));
    return old.length;
  }

  /** Puts rows, making the workflow that they are kept in when it is not there yet. */
  private async land(of: PayloadsOf, pending: readonly PendingRow[]): Promise<void> {
    const { workflow } = of;
    const answer = await this.storage.write(batchOf(workflow, { pending }));
    if (answer.workflow !== "missing") return;
    const create = this.record(of);
    const made = await this.storage.write({ ...batchOf(workflow, { pending }), create });
    if (made.workflow === "created") return;
    // Somebody else made it meanwhile: perhaps not for payloads.
    this.checked.delete(workflow);
    await this.check(of);
    await this.storage.write(batchOf(workflow, { pending }));
  }

  /** @throws AgstateError `REGION_REFUSED` */
  private async check(of: PayloadsOf): Promise<void> {
    const { workflow, home } = of;
    if (this.checked.has(workflow)) return;
    const record = await this.storage.readWorkflow(workflow);
    if (record === undefined) return;
    if (parseDataPolicy(record.isolation).home !== home) {
      throw new AgstateError(
        "REGION_REFUSED",
        `the store of region ${this.region} has a workflow ${quoteForMessage(workflow)} that is not there for payloads of one in ${home}; each workflow has an id of its own in all regions`,
        { workflow, region: this.region, home },
      );
    }
    this.checked.set(workflow, true);
  }

  private record({ workflow, home }: PayloadsOf): WorkflowRecord {
    return {
      id: workflow,
      classification: "internal",
      storageRegion: this.region,
      retentionPolicy: null,
      isolation: formatDataPolicy({
        isolation: [],
        subjects: [],
        keyed: "nothing",
        placement: [],
        home,
      }),
      createdAt: this.source.now(),
      completedAt: null,
    };
  }
}

function batchOf(
  workflow: string,
  pending: { readonly pending?: readonly PendingRow[]; readonly dropPending?: readonly string[] },
) {
  return { workflow, objects: [], moves: [], atomic: true, ...pending };
}

/** The hash of the payload that a row holds; null of any other row. */
function hashOf(key: string): string | null {
  return key.startsWith(PAYLOADS) ? key.slice(PAYLOADS.length) : null;
}

/** The hash that a row marks, if it does since a moment; null of any other row. */
function markedBy(row: PendingRow, since: number): string | null {
  if (!row.key.startsWith(SWEEPING)) return null;
  const value = openPending(row);
  const isYoung = isJsonObject(value) && typeof value.at === "number" && value.at >= since;
  return isYoung ? (row.key.slice(SWEEPING.length).split("/", 1)[0] as string) : null;
}

function sealPayload(hash: string, payload: StoredPayload): PendingRow {
  return sealPending(PAYLOADS + hash, INDEX, payload as unknown as JsonValue);
}

/** @throws AgstateError `CORRUPT_OBJECT` */
function openPayload(row: PendingRow): StoredPayload {
  const value = openPending(row);
  if (
    isJsonObject(value) &&
    typeof value.at === "number" &&
    (value.value !== undefined || typeof value.sealed === "string")
  ) {
    return value as unknown as StoredPayload;
  }
  throw new AgstateError(
    "CORRUPT_OBJECT",
    `the pending row ${quoteForMessage(row.key)} holds no payload that this version can read; use the version that wrote it`,
    { key: row.key },
  );
}

function keepsBeingSwept({ workflow }: PayloadsOf, region: string): AgstateError {
  return new AgstateError(
    "STORE_BUSY",
    `payloads of workflow ${quoteForMessage(workflow)} are swept in region ${region} again and again while they are written; try again when the sweep is over`,
    { workflow, region },
  );
}
