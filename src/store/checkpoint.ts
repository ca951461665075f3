import type { Attributes, Place, Span, Telemetry } from "../core/telemetry.js";
import type { LoadedCommit } from "../objects/commit-reader.js";
import type { WrittenObject } from "../objects/sink.js";
import { parseAgentRef, shortRefName } from "../refs/names.js";
import type { CommitRecord } from "../storage/port.js";
import { bodyBytes } from "./commit-size.js";

/** A commit that is told of. */
interface MadeCommit {
  readonly record: CommitRecord;
  readonly loaded: Pick<LoadedCommit, "step" | "reason">;
  readonly objects: readonly WrittenObject[];
}

/** Where a commit is to stand. */
export interface CheckpointAt {
  readonly ref: string;
  /** Undefined where the ref is made with the commit. */
  readonly incarnation: string | undefined;
}

/** What spans say of where a commit is to stand, and who writes it. */
export function whereOf(
  workflow: string,
  { ref, incarnation }: CheckpointAt,
  author: string,
): Attributes {
  return {
    "workflow.id": workflow,
    "agent.id": parseAgentRef(ref)?.agent ?? author,
    branch: shortRefName(ref),
    ...(incarnation !== undefined && { "agstate.branch.incarnation": incarnation }),
  };
}

export interface CheckpointOptions {
  /** Where it was asked for; default here. */
  readonly at?: Place | undefined;
  /** The traceparent that the caller gives the commit. */
  readonly trace?: string | undefined;
}

/** What is told of a commit on its way to a branch: a span, from when it is made until it has landed, and what is counted of it. */
export class Checkpoint {
  readonly span: Span;
  private readonly since: number;
  private commit: MadeCommit | undefined;
  private stepName: string | undefined;
  private counted: number | undefined;
  private over = false;

  /** @param where as of `whereOf` */
  constructor(
    private readonly telemetry: Telemetry,
    where: Attributes,
    options: CheckpointOptions = {},
  ) {
    this.since = performance.now();
    this.span = telemetry.span("write_checkpoint", {
      at: options.at,
      traceparent: options.trace,
      attributes: where,
    });
  }

  /** What the commit says that it was made by, where the caller says nothing. */
  get traceparent(): string | undefined {
    return this.span.traceparent;
  }

  /** The commit is made, and has not landed. */
  made(commit: MadeCommit, stepName: string | undefined): void {
    this.commit = commit;
    this.stepName = stepName;
  }

  landed(): void {
    if (!this.ends()) return;
    this.tell(true);
    this.span.end();
    const { telemetry, commit } = this;
    if (!telemetry.isCounting) return;
    telemetry.count("agstate.commits", 1, this.by());
    telemetry.measure("agstate.commit.duration", this.seconds(), this.by());
    if (commit !== undefined)
      telemetry.count("agstate.commit.bytes", this.bytes(commit), this.by());
  }

  failed(error: unknown): void {
    if (!this.ends()) return;
    this.tell(false);
    this.span.fail(error);
    const { telemetry } = this;
    if (!telemetry.isCounting) return;
    const by = { ...this.by(), "error.type": telemetry.errorType(error) };
    telemetry.count("agstate.commit.failures", 1, by);
    telemetry.measure("agstate.commit.duration", this.seconds(), by);
  }

  /** There was nothing to write. */
  unchanged(): void {
    if (!this.ends()) return;
    this.span.set({ "agstate.commit.unchanged": true });
    this.span.end();
  }

  private tell(success: boolean): void {
    const { span, commit } = this;
    if (!span.isRecording) return;
    span.set({ "checkpoint.success": success });
    if (commit === undefined) return;
    span.set({
      "checkpoint.commit": commit.record.id,
      "agstate.commit.bytes": this.bytes(commit),
      "agstate.commit.objects": commit.objects.length,
    });
    const { step, reason } = commit.loaded;
    if (reason !== undefined) span.set({ "agstate.commit.reason": reason });
    if (step === undefined) return;
    const { number, action, status } = step;
    span.set({ "step.seq": number, "step.action": action, "step.status": status });
    if (this.stepName !== undefined) span.set({ "step.name": this.stepName });
  }

  private bytes(commit: MadeCommit): number {
    this.counted ??= bytesOf(commit);
    return this.counted;
  }

  private ends(): boolean {
    if (this.over) return false;
    this.over = true;
    return true;
  }

  private seconds(): number {
    return (performance.now() - this.since) / 1000;
  }

  private by() {
    const action = this.commit?.loaded.step?.action;
    return action === undefined ? {} : { "step.action": action };
  }
}

/** The spans of commits that are told of. */
export function spansOf(
  commits: readonly { readonly told: Checkpoint | undefined }[],
): readonly Span[] | undefined {
  let spans: Span[] | undefined;
  for (const { told } of commits) {
    if (told?.span.isRecording !== true) continue;
    if (spans === undefined) spans = [told.span];
    else spans.push(told.span);
  }
  return spans;
}

/** What is sent of a commit: its row with what that holds, and its objects. */
function bytesOf(commit: MadeCommit): number {
  let bytes = bodyBytes(commit);
  for (const object of commit.record.inline) if ("body" in object) bytes += object.body.length;
  return bytes;
}
