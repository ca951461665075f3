import { AgstateError } from "../../core/errors.js";
import { shortRefName } from "../../refs/names.js";
import { parseRefPattern, type RefMatcher } from "../../refs/pattern.js";
import type { RefRow, StoredReflogEntry } from "../../storage/port.js";
import { checkCount } from "../read.js";
import type { Repository } from "../repository.js";
import { Moves } from "../watch.js";
import { cursorTag, decodeCursor, encodeCursor, type Told } from "./cursor.js";
import type { AuditEvent, AuditOptions } from "./types.js";

/** How many entries are told of with commits that are read together. */
const BATCH = 100;

/**
 * Everything that happened to a workflow, each thing exactly once: the entries of all refs' logs, deleted refs
 * included, by time, then ref, then number; but each after the one before it in its own log.
 *
 * `cursor` is the position after the last event that was given; a trail that begins from there goes on just so, and
 * tells as well of what lands later and is dated earlier.
 */
export class AuditTrail implements AsyncIterableIterator<AuditEvent> {
  readonly #pattern: RefMatcher;
  readonly #limit: number;
  readonly #events: AsyncGenerator<AuditEvent, undefined, undefined>;
  #told: Told = new Map();
  #tag: string | null = null;
  #ready = 0;
  #moves: Moves | null = null;
  #ended = false;

  /** @internal Use `workflow.audit`. */
  constructor(
    private readonly repository: Repository,
    private readonly options: AuditOptions,
  ) {
    this.#pattern = parseRefPattern(options.refs ?? "*");
    this.#limit = checkCount("limit", options.limit);
    this.#events = this.#tell();
  }

  /** The position after the last event that was given: give it as `from` to go on from there. Its text grows with the number of refs. */
  get cursor(): string {
    if (this.#tag === null) {
      if (this.options.from !== undefined) return this.options.from;
      throw new AgstateError(
        "INVALID_ARGUMENT",
        "a trail has no cursor before it is begun; call start() first",
      );
    }
    return encodeCursor(this.#tag, this.#told);
  }

  /** How many more events are read already: at 0 the next one may have to be waited for. */
  get ready(): number {
    return this.#ready;
  }

  /** Settles where it begins, so that `cursor` can be asked for; it is done by itself when the first event is asked for. */
  async start(): Promise<void> {
    if (this.#tag !== null) return;
    const { storage, workflow } = this.repository;
    const { storeId } = await storage.describe();
    const tag = cursorTag(storeId, workflow);
    const { from, seen = [] } = this.options;
    if (from !== undefined) this.#told = decodeCursor(from, tag);
    for (const { ref, seq } of seen) {
      this.#told.set(ref, Math.max(seq, this.#told.get(ref) ?? 0));
    }
    this.#tag = tag;
  }

  /** @throws AgstateError `INVALID_ARGUMENT` for a cursor that is none, `STORE_DAMAGED` where a log lacks an entry, and what reading raises */
  next(): Promise<IteratorResult<AuditEvent, undefined>> {
    return this.#events.next();
  }

  async return(): Promise<IteratorResult<AuditEvent, undefined>> {
    this.#ended = true;
    await this.#moves?.return();
    await this.#events.return(undefined);
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  async *#tell(): AsyncGenerator<AuditEvent, undefined, undefined> {
    await this.start();
    let left = this.#limit;
    try {
      while (left > 0) {
        let batch: StoredReflogEntry[] = [];
        for await (const entry of this.#entries(left)) {
          batch.push(entry);
          if (batch.length < Math.min(BATCH, left)) continue;
          yield* this.#give(batch);
          left -= batch.length;
          batch = [];
          if (left === 0 || this.#isOver()) return;
        }
        yield* this.#give(batch);
        left -= batch.length;
        if (left === 0 || this.options.follow !== true || !(await this.#untilMore())) return;
      }
    } finally {
      await this.#moves?.return();
    }
  }

  async *#give(batch: readonly StoredReflogEntry[]): AsyncGenerator<AuditEvent, void, undefined> {
    // Loaded when it is asked for, as starting up must stay fast.
    const { describeEntries } = await import("./describe.js");
    const events = await describeEntries(this.repository, batch);
    this.#ready = events.length;
    for (const event of events) {
      if (this.#isOver()) return;
      this.#ready--;
      this.#told.set(event.ref, event.seq);
      yield event;
    }
  }

  /** What the logs hold now, and was not told. */
  async *#entries(most: number): AsyncGenerator<StoredReflogEntry, void, undefined> {
    const { storage, workflow } = this.repository;
    if (this.#isOver()) return;
    const read = await storage.readRefs(workflow, this.#pattern.read);
    const rows = read.filter(({ name }) => this.#pattern.matches(name));
    this.#checkTold(rows);
    const { mergeLogs } = await import("./merge-logs.js");
    yield* mergeLogs(storage, workflow, rows, this.#told, most);
  }

  /** A log never gets shorter: a cursor that knows more of one is of another store, or this is an older copy. */
  #checkTold(rows: readonly RefRow[]): void {
    const last = new Map(rows.map(({ name, seq }) => [name, seq]));
    for (const [ref, seq] of this.#told) {
      if (!this.#pattern.matches(ref) || seq <= (last.get(ref) ?? 0)) continue;
      throw new AgstateError(
        "INVALID_ARGUMENT",
        `the cursor is after entry ${seq} of ${shortRefName(ref)}, and its log has ${last.get(ref) ?? 0}: the store was put back to an older state, or entries are lost; agstate audit verify with a checkpoint tells more`,
        { ref, seen: seq, last: last.get(ref) ?? 0 },
      );
    }
  }

  /** Waits until a log holds what was not told; false when there will be nothing. */
  async #untilMore(): Promise<boolean> {
    const { storage, workflow } = this.repository;
    const { signal } = this.options;
    this.#moves ??= new Moves(storage, workflow, this.#pattern, {
      from: Object.fromEntries(this.#told),
      ...(signal === undefined ? {} : { signal }),
    });
    for (;;) {
      if (this.#isOver()) return false;
      const { done, value } = await this.#moves.next();
      if (done === true) return false;
      if (value.seq > (this.#told.get(value.ref) ?? 0)) return true;
    }
  }

  #isOver(): boolean {
    return this.#ended || this.options.signal?.aborted === true;
  }
}
