import { isAgstateError } from "../core/errors.js";
import type { ObjectId } from "../core/ids.js";
import type { JsonValue } from "../core/json.js";
import { decodeValue } from "../objects/decode.js";
import { createDraftContext } from "../objects/draft/draft.js";
import { applyOperations, type StateOperation } from "../objects/draft/operations.js";
import { reconcile } from "../objects/draft/reconcile.js";
import type { Draft, DraftContext } from "../objects/draft/types.js";
import { encodeValue, type Link, toLink } from "../objects/encode.js";
import { normalize } from "../objects/normalize.js";
import type { ObjectSink } from "../objects/sink.js";
import type { BranchHead } from "./branch-head.js";
import type { Repository } from "./repository.js";

/** The state part of a write: its link, and the value when it is at hand as a whole. */
export interface NewState {
  readonly link: Link | undefined;
  readonly value: JsonValue | undefined;
  /** The version of the state's schema that it is made by. */
  readonly version: number | undefined;
  /** Whether it is of a higher version than the head's, so that it is another state even where the values are equal. */
  readonly raised: boolean;
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
    const { commit } = this.head;
    const stored = commit.root.state;
    const raised = (repository.schema?.migratesFrom(commit) ?? null) !== null;
    const by = { version: repository.versionAfter(commit), raised };
    const kept = this.kept?.id === stored?.id ? this.kept?.value : undefined;
    const previous = kept ?? (await this.previousValue());
    const { stateMaxBytes } = repository.context.limits;
    const value = normalize(given, { previous, maxBytes: stateMaxBytes });
    // A small state, like a new one, has no parts to keep.
    if (previous === undefined || stored === undefined || stored.type === "blob") {
      if (stored !== undefined && value === previous) return { link: stored, value, ...by };
      const link = toLink(sink, encodeValue(sink, value, repository.statePolicy));
      return { link, value, ...by };
    }
    if (value === previous) return { link: stored, value, ...by };
    const context = createDraftContext(this.head.objects, sink);
    const draft = await reconcile(context, await context.open(stored), previous, value);
    return { link: toLink(sink, await draft.encode(repository.statePolicy)), value, ...by };
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

  /** Edits the head's state; one of an older version after migrating it, unless nothing is edited. */
  async fromOperations(sink: ObjectSink, operations: readonly StateOperation[]): Promise<NewState> {
    const { repository } = this;
    const { commit } = this.head;
    const context = createDraftContext(this.head.objects, sink);
    const from = repository.schema?.migratesFrom(commit) ?? null;
    const link = commit.root.state;
    if (from !== null && operations.length === 0) {
      return { link, value: undefined, version: commit.stateVersion, raised: false };
    }
    const draft = await applyOperations(
      context,
      from !== null ? await this.migrated(context, from) : link ? await context.open(link) : null,
      operations,
      repository.context.limits.stateMaxBytes,
    );
    const by = { version: repository.versionAfter(commit), raised: from !== null };
    if (draft === null) return { link: undefined, value: undefined, ...by };
    const encoded = await draft.encode(repository.statePolicy);
    return { link: toLink(sink, encoded), value: undefined, ...by };
  }

  private async migrated(context: DraftContext, from: number): Promise<Draft> {
    const { migratedDraft } = await import("./schema/states.js");
    const { repository, head } = this;
    return migratedDraft({ repository, commit: head.commit, from, reader: head.objects }, context);
  }
}
