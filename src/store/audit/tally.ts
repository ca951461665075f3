import type { Repository, StoreContext } from "../repository.js";
import { type AuditNote, writeEvent } from "./record.js";

/** How many different events one open store keeps apart in a workflow; what is beyond is counted together. */
const KINDS_APART_MAX = 100;

/** An event that has happened before, and may go on to happen. */
interface Counted {
  /** How often it happened, since the store was opened. */
  total: number;
  /** How often since it was recorded. */
  unwritten: number;
  note: AuditNote;
}

/** By workflow, of an open store. */
const tallies = new WeakMap<StoreContext, Map<string, Tally>>();

/**
 * Records an event that no move of another ref tells of, on `refs/audit/events`.
 *
 * An agent may be refused the same in a loop, and must not fill the store by it: the same event (kind, actor and facts) is
 * written when it happens for the first, second, fourth, eighth ... time since the store was opened, each time with how
 * often it happened since, and once more when the store is closed. So n refusals cost about log2(n)
 * commits, and every one is counted. Of events that differ, a hundred in a workflow are kept apart; all others
 * of a kind are counted as one, with no facts but that. What is counted and not written is lost when the process is killed: less than half
 * of what happened, and never the first.
 *
 * It neither throws nor changes what becomes of the call that was refused: where nothing can be written, it is counted, and
 * goes with the next.
 */
export async function recordAudit(repository: Repository, note: AuditNote): Promise<void> {
  await tallyOf(repository).add(note);
}

/** Records an event by itself, however often the like happens: what it tells of costs more than its record. */
export async function recordEach(repository: Repository, note: AuditNote): Promise<void> {
  try {
    await writeEvent(repository, note, 1);
  } catch {
    // As with what is counted: what happened has happened.
  }
}

function tallyOf(repository: Repository): Tally {
  const { context, workflow } = repository;
  let ofStore = tallies.get(context);
  if (ofStore === undefined) {
    ofStore = new Map();
    tallies.set(context, ofStore);
  }
  let tally = ofStore.get(workflow);
  if (tally === undefined) {
    tally = new Tally(repository);
    ofStore.set(workflow, tally);
  }
  return tally;
}

class Tally {
  private readonly counted = new Map<string, Counted>();

  constructor(private readonly repository: Repository) {}

  async add(given: AuditNote): Promise<void> {
    const apart = JSON.stringify([given.kind, given.actor, given.facts]);
    const isNew = !this.counted.has(apart);
    const together = isNew && this.counted.size >= KINDS_APART_MAX;
    const note = together ? others(given) : given;
    const key = together ? note.kind : apart;
    const counted = this.counted.get(key) ?? { total: 0, unwritten: 0, note };
    this.counted.set(key, counted);
    counted.total++;
    counted.unwritten++;
    this.repository.context.gathering.add(this.flush);
    if (isPowerOfTwo(counted.total)) await this.write(counted);
  }

  /** Writes what is counted and not written; of the store's close. */
  private readonly flush = async (): Promise<void> => {
    for (const counted of this.counted.values()) await this.write(counted);
  };

  private async write(counted: Counted): Promise<void> {
    const { context } = this.repository;
    const times = counted.unwritten;
    if (times === 0) return;
    // Taken before it is written, so that what happens meanwhile is not written twice.
    counted.unwritten = 0;
    let written = false;
    try {
      written = await writeEvent(this.repository, counted.note, times);
    } catch {
      // A store that is read-only, full or gone: what was refused is refused all the same.
    }
    if (!written) counted.unwritten += times;
    const left = [...this.counted.values()].some(({ unwritten }) => unwritten > 0);
    if (!left) context.gathering.delete(this.flush);
  }
}

function others({ kind, actor }: AuditNote): AuditNote {
  return {
    kind,
    actor,
    says: `${kind}: more that differ than are kept apart`,
    facts: { more: KINDS_APART_MAX },
  };
}

function isPowerOfTwo(n: number): boolean {
  return Number.isInteger(Math.log2(n));
}
