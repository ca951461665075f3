import { NO_TELEMETRY, type Place, type Telemetry } from "../../core/telemetry.js";
import type { BackendOptions, WriteAnswer, WriteBatch } from "../port.js";
import { checkDistinctRefs, sizeOf } from "../rows/batch.js";
import type { Bringing } from "../rows/round-trips.js";
import {
  appendStatement,
  decodeAppends,
  encodeAppend,
  encodeAppends,
  fitsAlone,
  inLockOrder,
  isAppend,
} from "./append-call.js";
import type { Connection } from "./connection.js";
import { codeOf, isAway } from "./errors.js";
import {
  decodePending,
  encodePending,
  encodePendings,
  isPending,
  pendingNames,
  pendingStatement,
} from "./pending-call.js";
import type { Prepared } from "./prepared-call.js";
import type { WorkflowKeys } from "./workflow-keys.js";
import { type AnswerRow, decodeAnswers, encodeBatches, writeStatement } from "./write-call.js";

/** The bytes after which a group takes no further member. */
const GROUP_MAX_BYTES = 16 * 1024 * 1024;
const GROUP_MAX_MEMBERS = 512;
/** How many groups are under way at a time: while the server lands one, the next is made ready. */
const GROUPS_MAX = 2;

/** What the functions for appends say of a commit that is stored although its ref was not moved. */
const COMMIT_IS_THERE = "23505";

const GROUPS_OF = { "db.system.name": "postgresql" };

interface Member {
  readonly batch: WriteBatch;
  /** Where it was asked for. */
  readonly at: Place;
  readonly names: readonly string[];
  readonly resolve: (answer: WriteAnswer) => void;
  readonly reject: (error: unknown) => void;
  readonly bytes: number;
  /** Its group failed: it is sent again in a call of its own. */
  alone: boolean;
}

/** What a group writer needs. */
export interface WriteContext {
  readonly connection: Connection;
  readonly keys: WorkflowKeys;
  readonly options: BackendOptions;
  /** Quoted. */
  readonly schema: string;
  /** Rows seen less than half of this ago are not freshened. */
  readonly graceMs: number;
  /** Every call is for one workflow, by functions that run whole where the workflow is. */
  readonly distributed: boolean;
}

/**
 * Lands batches in groups: what arrives while writes are under way goes out
 * together in the next, one statement and one transaction, each member judged
 * alone. Two groups are under way at a time, so that neither server nor client waits for
 * the other; what comes all at once is halved for the same reason.
 *
 * A ref is moved by one group at a time, and once by each; a batch for a ref that is under way
 * waits, as do those behind it for the same ref. When a call
 * fails, each member is sent again alone, so that only the one at fault fails; all fail when the
 * server is away.
 * The same batch is sent when an answer was lost: it tells whether it has landed.
 */
export class GroupWriter {
  private queue: Member[] = [];
  private groups = 0;
  /** Refs that a group under way moves. */
  private readonly busy = new Set<string>();
  private armed = false;
  private whenIdle: (() => void)[] = [];
  private readonly statements: Readonly<
    Record<
      "write_batches" | "append_commit" | "append_commits" | "write_pending" | "append_pending",
      Prepared
    >
  >;

  private readonly telemetry: Telemetry;

  constructor(private readonly context: WriteContext) {
    this.telemetry = context.options.telemetry ?? NO_TELEMETRY;
    const { schema, options } = context;
    // Named by what they are: a session may know statements of other schemas and versions.
    const prepared = (operation: string, text: string) => ({
      text,
      name: `agstate_${options.digest(text).slice(0, 32)}`,
      operation,
    });
    const appends = (name: "append_commit" | "append_commits") =>
      prepared(name, appendStatement(schema, name));
    const pendings = (name: "write_pending" | "append_pending") =>
      prepared(name, pendingStatement(schema, name));
    this.statements = {
      write_batches: prepared("write_batches", writeStatement(schema)),
      append_commit: appends("append_commit"),
      append_commits: appends("append_commits"),
      write_pending: pendings("write_pending"),
      append_pending: pendings("append_pending"),
    };
  }

  write(batch: WriteBatch): Promise<WriteAnswer> {
    checkDistinctRefs(batch);
    return new Promise((resolve, reject) => {
      const names = namesOf(batch);
      const at = this.telemetry.place();
      this.queue.push({ batch, at, names, resolve, reject, bytes: sizeOf(batch), alone: false });
      this.telemetry.queued(1);
      this.arm();
    });
  }

  /** Resolves when nothing is queued any more. */
  async drain(): Promise<void> {
    if (this.groups === 0 && this.queue.length === 0) return;
    await new Promise<void>((resolve) => {
      this.whenIdle.push(resolve);
    });
  }

  private arm(): void {
    if (this.armed) return;
    this.armed = true;
    const begin = () => {
      this.armed = false;
      this.begin();
    };
    // What the same turn of the event loop brings goes together; if the server is at work
    // anyhow, all that is ready.
    if (this.groups === 0) queueMicrotask(begin);
    else setImmediate(begin);
  }

  private begin(): void {
    const most = Math.max(1, Math.min(GROUPS_MAX, this.context.connection.poolMax - 1));
    while (this.groups < most && this.queue.length > 0) {
      const half = this.groups === 0 && most > 1 ? Math.ceil(this.queue.length / 2) : Infinity;
      const group = this.takeGroup(Math.min(GROUP_MAX_MEMBERS, half));
      if (group.length === 0) return;
      void this.run(group);
    }
  }

  private async run(group: readonly Member[]): Promise<void> {
    this.groups++;
    for (const { names } of group) for (const name of names) this.busy.add(name);
    await this.land(group);
    this.groups--;
    for (const { names } of group) for (const name of names) this.busy.delete(name);
    if (this.queue.length > 0) this.arm();
    else if (this.groups === 0) for (const tell of this.whenIdle.splice(0)) tell();
  }

  private takeGroup(maxMembers: number): Member[] {
    const group: Member[] = [];
    const later: Member[] = [];
    const taken = new Set(this.busy);
    let bytes = 0;
    // What only puts pending rows goes by functions of its own.
    let pending = false;
    for (const member of this.queue) {
      const { names } = member;
      const fits =
        !names.some((name) => taken.has(name)) &&
        (group.length === 0 ||
          (isPending(member.batch) === pending &&
            !member.alone &&
            group[0]?.alone !== true &&
            group.length < maxMembers &&
            bytes + member.bytes <= GROUP_MAX_BYTES));
      if (group.length === 0 && fits) pending = isPending(member.batch);
      // Also of what has to wait: what is behind it for the same ref must not overtake it.
      for (const name of names) taken.add(name);
      if (fits) {
        group.push(member);
        bytes += member.bytes;
      } else later.push(member);
    }
    this.queue = later;
    this.telemetry.queued(-group.length);
    return group;
  }

  private async land(group: readonly Member[]): Promise<void> {
    this.telemetry.measure("agstate.group.size", group.length, GROUPS_OF);
    const batches = group.map(({ batch }) => batch);
    const [{ at }] = group as [Member];
    let answers: WriteAnswer[];
    try {
      answers = await this.telemetry.at(at, () => this.call(batches));
    } catch (error) {
      // No member is at fault for a server that is away, and each alone would wait as long again.
      if (group.length === 1 || isAway((error as Error).cause)) {
        for (const member of group) member.reject(error);
        return;
      }
      for (const member of group) member.alone = true;
      this.queue.unshift(...group);
      this.telemetry.queued(group.length);
      return;
    }
    group.forEach((member, i) => {
      member.resolve(answers[i] as WriteAnswer);
    });
  }

  private call(batches: readonly WriteBatch[]): Promise<WriteAnswer[]> {
    if (batches.every(isPending)) return this.putPending(batches);
    return this.goesQuickly(batches) ? this.append(batches) : this.send(batches);
  }

  private async putPending(batches: readonly WriteBatch[]): Promise<WriteAnswer[]> {
    const { connection, keys, distributed } = this.context;
    const { write_pending: alone, append_pending: together } = this.statements;
    const [only] = batches as [WriteBatch];
    if (batches.length === 1) {
      const values = encodePending(only, keys);
      return decodePending(batches, await connection.call(alone, values, bringing(batches)));
    }
    if (distributed) return this.send(batches);
    const values = encodePendings(batches, keys);
    return decodePending(batches, await connection.call(together, values, bringing(batches)));
  }

  /** Whether batches go by the functions for appends; the one for several is not for distributed tables. */
  private goesQuickly(batches: readonly WriteBatch[]): boolean {
    if (!batches.every(isAppend)) return false;
    return !this.context.distributed || (batches.length === 1 && batches.every(fitsAlone));
  }

  private async send(batches: readonly WriteBatch[]): Promise<WriteAnswer[]> {
    const { connection, keys } = this.context;
    const values = encodeBatches(batches, keys, ...this.clock());
    const { write_batches } = this.statements;
    const rows = await connection.write<AnswerRow & Row>(write_batches, values, bringing(batches));
    return decodeAnswers(batches, rows);
  }

  /** The quick way; who lost, or has landed before, is told why by the other. */
  private async append(batches: readonly WriteBatch[]): Promise<WriteAnswer[]> {
    const { connection, keys } = this.context;
    const [only] = batches as [WriteBatch];
    const alone = batches.length === 1 && fitsAlone(only);
    const ordered = alone ? batches : inLockOrder(batches, keys);
    const values = alone
      ? encodeAppend(only, keys, ...this.clock())
      : encodeAppends(ordered, keys, ...this.clock());
    const statement = this.statements[alone ? "append_commit" : "append_commits"];
    let landed: string | null;
    try {
      landed = await connection.call(statement, values, bringing(batches));
    } catch (error) {
      if (codeOf((error as Error).cause) !== COMMIT_IS_THERE) throw error;
      return this.send(batches);
    }
    const answers = decodeAppends(ordered, landed);
    const left = batches.filter((batch) => !answers.has(batch));
    const told = left.length === 0 ? [] : await this.send(left);
    return batches.map((batch) => answers.get(batch) ?? (told.shift() as WriteAnswer));
  }

  /** Now, and before when a row has to be freshened, in seconds. */
  private clock(): [now: number, stale: number] {
    const now = Math.floor(this.context.options.now() / 1000);
    return [now, now - Math.floor(this.context.graceMs / 2000)];
  }
}

/** What is told of a call that brings batches. */
function bringing(batches: readonly WriteBatch[]): Bringing {
  return { batch: batches.length, spans: batches.flatMap(({ spans = [] }) => spans) };
}

/** What a batch must have to itself: its refs, its pending rows, and the workflow that it creates. */
function namesOf(batch: WriteBatch): string[] {
  const { workflow, create, moves } = batch;
  const names = [...moves.map((move) => `${workflow}\0${move.ref}`), ...pendingNames(batch)];
  if (create !== undefined) names.push(`${create.id}\0`);
  return names;
}

type Row = Record<string, unknown>;
