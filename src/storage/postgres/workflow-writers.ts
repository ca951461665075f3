import type { WriteAnswer, WriteBatch } from "../port.js";
import { GroupWriter, type WriteContext } from "./group-writer.js";

/** Lands batches. */
export interface Writer {
  write(batch: WriteBatch): Promise<WriteAnswer>;
  /** Resolves when nothing is queued any more. */
  drain(): Promise<void>;
}

interface Lane {
  readonly writer: GroupWriter;
  /** Writes that have no answer yet. */
  pending: number;
}

/**
 * Lands batches in groups of one workflow each; groups of different workflows are
 * under way at the same time, as far as the pool has connections.
 */
export class WorkflowWriters implements Writer {
  private readonly lanes = new Map<string, Lane>();

  constructor(private readonly context: WriteContext) {}

  async write(batch: WriteBatch): Promise<WriteAnswer> {
    const { workflow } = batch;
    const lane = this.lanes.get(workflow) ?? {
      writer: new GroupWriter(this.context),
      pending: 0,
    };
    this.lanes.set(workflow, lane);
    lane.pending++;
    try {
      return await lane.writer.write(batch);
    } finally {
      lane.pending--;
      if (lane.pending === 0) this.lanes.delete(workflow);
    }
  }

  async drain(): Promise<void> {
    await Promise.all([...this.lanes.values()].map(({ writer }) => writer.drain()));
  }
}
