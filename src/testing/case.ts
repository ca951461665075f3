import type { Storage } from "../storage/port.js";

/** An open, empty storage under test. */
export interface OpenedStorage {
  readonly storage: Storage;
  /** Opens the same data again, in this process; `storage` is closed by then. Absent when data does not outlive it. */
  readonly reopen?: () => Promise<Storage>;
  /** Opens the same data a second time while `storage` is open. Absent when only one can have it. */
  readonly beside?: () => Promise<Storage>;
  /** Closes whatever is open and removes the data. */
  destroy(): Promise<void>;
}

export interface ConformanceContext extends OpenedStorage {
  /** Whether large amounts are to be a tenth of what they are. */
  readonly small: boolean;
}

/** One thing that every backend must do; throws when it does not. */
export interface ConformanceCase {
  readonly name: string;
  run(context: ConformanceContext): Promise<void>;
}
