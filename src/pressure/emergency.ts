import { type Checkpointed, type EmergencyReason, type Guarded, registry } from "./guards.js";

/** What became of everything that only memory held. */
export interface CheckpointReport {
  readonly reason: EmergencyReason;
  readonly branches: readonly Checkpointed[];
  /** Why commits that handles without a guard had gathered could not land. */
  readonly errors: readonly Error[];
  /** Whether all of it is in the store. */
  readonly safe: boolean;
  readonly ms: number;
}

export interface CheckpointRequest {
  readonly reason: EmergencyReason;
  /** What the commits say. */
  readonly message: string;
  /** Milliseconds after which whatever has not reached the store counts as failed. */
  readonly deadlineMs: number;
}

/**
 * Brings everything that only memory holds into the store, one pass at a time.
 *
 * Whoever asks while a pass is under way gets the next one, which may find more than that did; all who ask meanwhile get the
 * same, so that asking often writes no more often.
 */
export class Emergency {
  private running: Promise<CheckpointReport> | undefined;
  private next: Promise<CheckpointReport> | undefined;

  run(request: CheckpointRequest): Promise<CheckpointReport> {
    if (this.running === undefined) return this.start(request);
    this.next ??= this.running.then(() => {
      this.next = undefined;
      return this.start(request);
    });
    return this.next;
  }

  private start(request: CheckpointRequest): Promise<CheckpointReport> {
    const running = checkpointAll(request).finally(() => {
      if (this.running === running) this.running = undefined;
    });
    this.running = running;
    return running;
  }
}

async function checkpointAll(request: CheckpointRequest): Promise<CheckpointReport> {
  const began = performance.now();
  const { reason, message, deadlineMs } = request;
  const deadline = new Deadline(deadlineMs);
  try {
    const lanes = new Map<object, Guarded[]>();
    for (const guard of registry.guards) {
      lanes.set(guard.lane, [...(lanes.get(guard.lane) ?? []), guard]);
    }
    const done = await Promise.all(
      [...lanes.values()].map(async (guards) => {
        const results: Checkpointed[] = [];
        // One at a time: each takes memory while it writes.
        for (const guard of guards) {
          results.push(await deadline.bound(guard, () => guard.checkpoint(reason, message)));
        }
        return results;
      }),
    );
    const branches = done.flat();
    const errors = await land(deadline);
    const safe = errors.length === 0 && branches.every(({ outcome }) => outcome !== "failed");
    return { reason, branches, errors, safe, ms: performance.now() - began };
  } finally {
    deadline.end();
  }
}

/** Lands what other handles have gathered. */
async function land(deadline: Deadline): Promise<Error[]> {
  const landings = [...registry.landers].map((each) => Promise.race([each(), deadline.over]));
  const settled = await Promise.allSettled(landings);
  return settled.flatMap((each) => {
    if (each.status === "rejected") return [asError(each.reason)];
    return each.value === OVER ? [deadline.error("what was gathered")] : [];
  });
}

const OVER = Symbol("over");

class Deadline {
  readonly over: Promise<typeof OVER>;
  private readonly began = performance.now();
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly ms: number) {
    this.over = new Promise((resolve) => {
      this.timer = setTimeout(() => resolve(OVER), ms);
    });
  }

  async bound(guard: Guarded, work: () => Promise<Checkpointed>): Promise<Checkpointed> {
    const since = performance.now();
    const { workflow, branch } = guard;
    if (since - this.began < this.ms) {
      const result = await Promise.race([work(), this.over]);
      if (result !== OVER) return result;
    }
    const error = this.error(`${branch} of ${workflow}`);
    const ms = performance.now() - since;
    return { workflow, branch, outcome: "failed", commit: null, error, ms };
  }

  error(what: string): Error {
    return new Error(`${what} did not reach the store within ${this.ms} ms`);
  }

  end(): void {
    clearTimeout(this.timer);
  }
}

export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
