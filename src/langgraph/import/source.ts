import type { CheckpointTuple } from "@langchain/langgraph-checkpoint";
import { AgstateError } from "../../core/errors.js";

/** Where a checkpoint is, in LangGraph's own terms. */
export interface CheckpointPlace {
  readonly thread: string;
  readonly namespace: string;
  readonly id: string;
}

/** Another checkpointer's storage, which is only read. */
export interface CheckpointSource {
  /** All checkpoints: thread by thread, namespace by namespace, by rising id, so that parents come first. */
  places(): AsyncIterable<CheckpointPlace>;
  /** One checkpoint, as the checkpointer itself gives it. */
  read(place: CheckpointPlace): Promise<CheckpointTuple | undefined>;
  close(): Promise<void>;
}

/** How many places are asked for at once. */
export const PAGE = 1000;

/**
 * Loads an optional peer.
 *
 * @throws AgstateError `INVALID_ARGUMENT` that says what to install
 */
export async function loadPeer<T>(name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw cause;
    throw new AgstateError(
      "INVALID_ARGUMENT",
      `reading these checkpoints needs a package that is not installed; install it with npm install ${name}`,
      { package: name },
      { cause },
    );
  }
}

/** That the source can be opened but holds no checkpoints of LangGraph. */
export function noTables(where: string, cause?: unknown): AgstateError {
  return new AgstateError(
    "STORE_NOT_FOUND",
    `${where} has no tables of a LangGraph checkpointer; name the database that your graphs use`,
    {},
    { cause },
  );
}
