import { isAgstateError } from "../core/errors.js";
import type { ObjectId } from "../core/ids.js";
import type { JsonValue } from "../core/json.js";
import { decodeValue } from "../objects/decode.js";
import { createDraftContext } from "../objects/draft/draft.js";
import { applyOperations, type StateOperation } from "../objects/draft/operations.js";
import { reconcile } from "../objects/draft/reconcile.js";
import { encodeValue, type Link, toLink } from "../objects/encode.js";
import { normalize } from "../objects/normalize.js";
import type { ObjectSink } from "../objects/sink.js";
import type { BranchHead } from "./branch-head.js";
import type { Repository } from "./repository.js";

/** The state part of a write: its link, and the value when it is at hand as a whole. */
export interface NewState {
  readonly link: Link | undefined;
  readonly value: JsonValue | undefined;
}

/** Makes the states that go on top of a head: what differs from the head's alone is read and encoded. */
export class StateWriter {
  /** The state that was last committed or read, by its object's id, to find what changes in the next. */
  private kept: { readonly id: ObjectId | undefined; readonly value: JsonValue } | undefined;

  constructor(
    private readonly repository: Repository,
    private readonly head: BranchHead,
  ) {}

  /** Keeps a state's value at hand, as the head's. */
  keep(state: NewState | null): void {
    if (state?.value !== undefined) {
      this.kept = { id: this.head.commit.root.state?.id, value: state.value };
    }
  }

  /** Whether objects are stored and undamaged: this process read or wrote them before, or can read them now. */
  async isStored(ids: readonly ObjectId[]): Promise<boolean> {
    const { storage, workflow } = this.repository;
    const reader = this.head.objects;
    const unknown = ids.filter((id) => !reader.has(id));
    if (unknown.length === 0) return true;
    try {
      const objects = await storage.readObjects(workflow, unknown);
      return objects.every((object) => object !== undefined && !("tombstone" in object));
    } catch (error) {
      if (isAgstateError(error, "CORRUPT_OBJECT")) return false;
      throw error;
    }
  }

  async fromValue(sink: ObjectSink, given: unknown): Promise<NewState> {
    const { repository } = this;
    const stored = this.head.commit.root.state;
    const kept = this.kept?.id === stored?.id ? this.kept?.value : undefined;
    const previous = kept ?? (await this.previousValue());
    const { stateMaxBytes } = repository.context.limits;
    const value = normalize(given, { previous, maxBytes: stateMaxBytes });
    // A small state, like a new one, has no parts to keep.
    if (previous === undefined || stored === undefined || stored.type === "blob") {
      if (stored !== undefined && value === previous) return { link: stored, value };
      return { link: toLink(sink, encodeValue(sink, value, repository.statePolicy)), value };
    }
    if (value === previous) return { link: stored, value };
    const context = createDraftContext(this.head.objects, sink);
    const draft = await reconcile(context, await context.open(stored), previous, value);
    return { link: toLink(sink, await draft.encode(repository.statePolicy)), value };
  }

  /** The parent's state; undefined when there is none, or when it cannot be read, so that all is written anew. */
  private async previousValue(): Promise<JsonValue | undefined> {
    const stored = this.head.commit.root.state;
    if (stored === undefined) return undefined;
    try {
      return await decodeValue(this.head.objects, stored);
    } catch (error) {
      if (isAgstateError(error, "CORRUPT_OBJECT", "MISSING_OBJECT")) return undefined;
      throw error;
    }
  }

  async fromOperations(sink: ObjectSink, operations: readonly StateOperation[]): Promise<NewState> {
    const { repository } = this;
    const context = createDraftContext(this.head.objects, sink);
    const stored = this.head.commit.root.state;
    const draft = await applyOperations(
      context,
      stored === undefined ? null : await context.open(stored),
      operations,
      repository.context.limits.stateMaxBytes,
    );
    if (draft === null) return { link: undefined, value: undefined };
    return { link: toLink(sink, await draft.encode(repository.statePolicy)), value: undefined };
  }
}
