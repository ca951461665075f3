import { AgstateError } from "../core/errors.js";
import type { ObjectId } from "../core/ids.js";
import { checkIdentity, checkOneLine } from "../core/names.js";
import type { Span } from "../core/telemetry.js";
import type {
  CommitRecord,
  Expectation,
  Head,
  MoveAnswer,
  ObjectRecord,
  PendingRow,
  RefMove,
  RefRow,
  Storage,
  WorkflowRecord,
  WriteAnswer,
  WriteBatch,
} from "../storage/port.js";
import { shortRefName } from "./names.js";

/** Why a ref moves, for its log. */
export interface MoveNote {
  readonly actor: string;
  readonly reason: string;
  /** W3C traceparent. */
  readonly trace?: string | undefined;
}

/** A wanted move of a ref, with the commits that come with it. */
export interface RefUpdate {
  readonly ref: string;
  readonly expect: Expectation;
  readonly target: ObjectId | null;
  readonly commits?: readonly CommitRecord[];
  readonly maxStep?: number;
  readonly note: MoveNote;
}

export interface UpdateBatch {
  readonly updates: readonly RefUpdate[];
  readonly objects?: readonly ObjectRecord[];
  /** As of `WriteBatch`. */
  readonly needs?: readonly ObjectId[];
  readonly create?: WorkflowRecord;
  /** As of `WriteBatch`. */
  readonly complete?: number;
  /** All or none; default true. */
  readonly atomic?: boolean;
  /** As of `WriteBatch`. */
  readonly pending?: readonly PendingRow[];
  /** As of `WriteBatch`. */
  readonly dropPending?: readonly string[];
  /** As of `WriteBatch`. */
  readonly spans?: readonly Span[] | undefined;
}

/** The longest reason kept in a log entry, in bytes. */
const REASON_MAX_BYTES = 1024;

/** Who looks at what is written. */
export interface WriteWatch {
  /** Called before anything is written; what it throws keeps the write from happening. */
  readonly before?: (batch: UpdateBatch) => void;
  /** Told of a write that the storage raised an error for; the error is passed on when it has answered. */
  readonly failed?: (batch: UpdateBatch, error: unknown) => Promise<void>;
}

/** Moves the refs of one workflow by compare-and-swap, and reads them. */
export class RefStore {
  constructor(
    private readonly storage: Storage,
    readonly workflow: string,
    private readonly source: { now(): number; randomHex(bytes: number): string },
    private readonly watch: WriteWatch = {},
  ) {}

  /** The ref's row, also when the ref is deleted (its id is then null); undefined if there never was one. */
  async row(ref: string): Promise<RefRow | undefined> {
    return (await this.storage.readRefs(this.workflow, { names: [ref] }))[0];
  }

  /** The ref's row and the commit that it points to, in one call to the storage. */
  head(ref: string): Promise<Head | undefined> {
    return this.storage.readHead(this.workflow, ref);
  }

  /** The refs whose name begins with a prefix, sorted. */
  list(prefix = "refs/"): Promise<RefRow[]> {
    return this.storage.readRefs(this.workflow, { prefix });
  }

  /**
   * Moves refs in one transaction and gives an answer each: a lost race is a
   * value here, not an error.
   *
   * @throws AgstateError `INVALID_NAME`, `INVALID_VALUE`, `WORKFLOW_NOT_FOUND`, `WORKFLOW_EXISTS`, and what the storage raises
   */
  async apply(batch: UpdateBatch): Promise<readonly MoveAnswer[]> {
    let answer: WriteAnswer;
    try {
      this.watch.before?.(batch);
      answer = await this.storage.write(this.batchOf(batch));
    } catch (error) {
      await this.watch.failed?.(batch, error);
      throw error;
    }
    if (answer.workflow === "missing") throw workflowNotFound(this.workflow);
    if (answer.workflow === "exists") {
      throw new AgstateError(
        "WORKFLOW_EXISTS",
        `workflow ${JSON.stringify(this.workflow)} exists already; open it with store.workflow, or choose another id`,
        { workflow: this.workflow },
      );
    }
    return answer.moves;
  }

  private batchOf(batch: UpdateBatch): WriteBatch {
    return {
      workflow: this.workflow,
      create: batch.create,
      complete: batch.complete,
      objects: batch.objects ?? [],
      needs: batch.needs,
      moves: batch.updates.map((update) => this.move(update)),
      atomic: batch.atomic ?? true,
      pending: batch.pending,
      dropPending: batch.dropPending,
      spans: batch.spans,
    };
  }

  private move(update: RefUpdate): RefMove {
    return {
      ref: update.ref,
      expect: update.expect,
      target: update.target,
      incarnation: this.source.randomHex(16),
      maxStep: update.maxStep ?? 0,
      commits: update.commits ?? [],
      log: {
        actor: checkIdentity("actor", update.note.actor),
        reason: checkOneLine("reason", update.note.reason, REASON_MAX_BYTES),
        time: this.source.now(),
        trace: update.note.trace ?? "",
      },
    };
  }
}

export function workflowNotFound(workflow: string): AgstateError {
  return new AgstateError(
    "WORKFLOW_NOT_FOUND",
    `there is no workflow ${JSON.stringify(workflow)} in this store; list them with agstate workflow list, or create it`,
    { workflow },
  );
}

/**
 * The row after a move, or the error that its refusal is.
 *
 * @throws AgstateError `REF_CONFLICT`, `MISSING_OBJECT`, `WORKFLOW_COMPLETE`
 */
export function movedRow(update: RefUpdate, answer: MoveAnswer | undefined): RefRow {
  switch (answer?.outcome) {
    case "moved":
      return answer.row;
    case "landed":
      if (answer.row !== null) return answer.row;
      break;
    case "conflict":
      throw refConflict(update, answer.actual);
    case "closed":
      throw new AgstateError(
        "WORKFLOW_COMPLETE",
        `${shortRefName(update.ref)} takes no more commits: its workflow was completed; read it, or create another workflow`,
        { ref: update.ref },
      );
    case "missing":
      throw new AgstateError(
        "MISSING_OBJECT",
        `${shortRefName(update.ref)} cannot move: commit ${answer.ids[0]} is not in the store`,
        { ref: update.ref, ids: answer.ids },
      );
    default:
  }
  throw new AgstateError("INTERNAL", `${shortRefName(update.ref)} was not moved`, {
    ref: update.ref,
    outcome: answer?.outcome ?? null,
  });
}

function refConflict(update: RefUpdate, actual: RefRow | null): AgstateError {
  const is = actual?.id ?? null;
  if (update.expect.kind === "id" && update.expect.id === is) {
    return new AgstateError(
      "REF_CONFLICT",
      `${shortRefName(update.ref)} is at ${is} as expected, but was moved and came back, or was made anew; refresh, and try again`,
      { ref: update.ref, expected: is, actual: is, seq: actual?.seq },
    );
  }
  const wanted = update.expect.kind === "id" ? `at ${update.expect.id}` : `${update.expect.kind}`;
  return new AgstateError(
    "REF_CONFLICT",
    `${shortRefName(update.ref)} was expected to be ${wanted}, but is ${is === null ? "absent" : `at ${is}`}; refresh, look at what changed, and try again`,
    {
      ref: update.ref,
      expected: update.expect.kind === "id" ? update.expect.id : update.expect.kind,
      actual: is,
    },
  );
}
