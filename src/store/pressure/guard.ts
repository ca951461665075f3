import { AgstateError, isAgstateError } from "../../core/errors.js";
import type { ObjectId } from "../../core/ids.js";
import { asError } from "../../pressure/emergency.js";
import {
  type Checkpointed,
  type EmergencyReason,
  type Guarded,
  registry,
} from "../../pressure/guards.js";
import type { Repository } from "../repository.js";
import type { RescueBranch } from "./rescue.js";
import type { GuardedBranch, UnaskedFor } from "./types.js";

export interface GuardOptions {
  /**
   * Gives the state as it is at that moment, as a value that the caller does not change any more. Left out, only commits that
   * the handle has gathered land.
   */
  readonly state?: () => unknown;
}

/** A branch that is brought into the store when memory is short. */
export interface Guard {
  readonly branch: string;
  /** Ends it; calling it again does nothing. */
  release(): void;
}

/** Guards a branch. @throws AgstateError `INVALID_ARGUMENT` */
export function guardBranch(
  repository: Repository,
  branch: GuardedBranch,
  options: GuardOptions,
): Guard {
  const { state } = options;
  if (state !== undefined && typeof state !== "function") {
    throw new AgstateError(
      "INVALID_ARGUMENT",
      "a guard's state is a function that gives the state as it is when it is called",
    );
  }
  for (const other of registry.guards) {
    if (!(other instanceof BranchGuard) || other.handle !== branch) continue;
    throw new AgstateError(
      "INVALID_ARGUMENT",
      `${branch.name} is guarded already by this handle, and has one state; release that guard before another is made`,
      { branch: branch.name },
    );
  }
  const guard = new BranchGuard(repository, branch, state);
  registry.guards.add(guard);
  if (registry.watch === undefined) {
    void import("../../pressure/watch.js").then(({ watchForGuards }) => watchForGuards());
  }
  return {
    branch: branch.name,
    release: () => {
      registry.guards.delete(guard);
      const { guards, watch } = registry;
      if (guards.size === 0 && watch?.isImplicit === true) void watch.close();
    },
  };
}

class BranchGuard implements Guarded {
  readonly workflow: string;
  readonly branch: string;
  readonly lane: object;
  private beside: RescueBranch | undefined;

  constructor(
    private readonly repository: Repository,
    readonly handle: GuardedBranch,
    private readonly state: GuardOptions["state"],
  ) {
    this.workflow = repository.workflow;
    this.branch = handle.name;
    this.lane = repository.context;
  }

  async checkpoint(reason: EmergencyReason, message: string): Promise<Checkpointed> {
    const began = performance.now();
    const { workflow, branch } = this;
    const end = (rest: Pick<Checkpointed, "outcome" | "commit" | "rescue" | "error">) => ({
      workflow,
      branch,
      ...rest,
      ms: performance.now() - began,
    });
    // What was only read takes memory that writing needs.
    this.repository.context.forget();
    try {
      const state = this.state === undefined ? undefined : { value: await this.state() };
      return end(await this.write({ reason, message }, state));
    } catch (thrown) {
      return end({ outcome: "failed", commit: null, error: asError(thrown) });
    }
  }

  private async write(
    made: UnaskedFor,
    state: { readonly value: unknown } | undefined,
  ): Promise<Pick<Checkpointed, "outcome" | "commit" | "rescue">> {
    const { handle } = this;
    const before = handle.loadedHead.id;
    const gathered = handle.gathered;
    try {
      const { id } = await handle.putUnasked(made, state);
      await this.confirm(id);
      return { outcome: id === before && gathered === 0 ? "unchanged" : "committed", commit: id };
    } catch (error) {
      // Only a whole state can stand by itself: what was gathered on top of another head cannot.
      if (!isAgstateError(error, "REF_CONFLICT") || state === undefined) throw error;
      return this.rescue(made, state);
    }
  }

  /** Commits a state beside its branch, each time on the same one, as long as the handle is where it was. */
  private async rescue(
    made: UnaskedFor,
    state: { readonly value: unknown },
  ): Promise<Pick<Checkpointed, "outcome" | "commit" | "rescue">> {
    if (this.beside?.base !== this.handle.loadedHead.id) {
      const { makeRescueBranch } = await import("./rescue.js");
      this.beside = await makeRescueBranch(this.repository, this.handle, made.reason);
    }
    const { handle, name } = this.beside;
    const { id } = await handle.putUnasked(made, state);
    await this.confirm(id);
    return { outcome: "rescued", commit: id, rescue: name };
  }

  /** Reads from the store itself that a commit is there: its row exists only if the move of its ref was kept. */
  private async confirm(id: string): Promise<void> {
    const { storage, workflow } = this.repository;
    const [row] = await storage.readCommits(workflow, [id as ObjectId]);
    if (row !== undefined) return;
    throw new AgstateError(
      "STORE_DAMAGED",
      `commit ${id} of ${this.branch} was said to have landed, and is not in the store; run agstate fsck`,
      { commit: id, branch: this.branch },
    );
  }
}
