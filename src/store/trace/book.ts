import { SCOPE } from "../../tracing/scope.js";
import type { TraceSpan } from "../../tracing/trace-span.js";
import { CLOCKS, type Claim, claimOf, lasting, millisecondsOf, textIn } from "./claim.js";
import type { Finder } from "./finder.js";

/** A span of agstate's, as far as it matters for others. */
interface Own {
  readonly start: number;
  readonly parent: string | undefined;
  readonly workflow: string | null;
  readonly claim: Claim | undefined;
}

/**
 * What is remembered of spans as they are read: of agstate's what they claim, of others when they began, since they may be
 * parents. It holds some 150 bytes for each of the latter, and some 800 for a claim.
 */
export class SpanBook {
  readonly traces = new Set<string>();
  /** Traces in which something of agstate's failed: those that collectors keep, however late. */
  readonly failed = new Set<string>();
  readonly claims = new Map<string, Claim[]>();
  spans = 0;
  readonly #own = new Map<string, Own>();
  readonly #others = new Map<string, number>();
  readonly #texts = new Map<string, string>();

  constructor(
    private readonly finder: Finder,
    private readonly workflow: string | undefined,
  ) {}

  add(span: TraceSpan): void {
    this.spans++;
    this.traces.add(span.traceId);
    const id = span.traceId + span.spanId;
    const start = millisecondsOf(span.start);
    if (span.scope !== SCOPE) {
      this.#others.set(id, start);
      return;
    }
    const named = textIn(span, "workflow.id");
    const workflow = named === undefined ? null : this.same(named);
    const claim = claimOf(span, workflow, (text) => this.same(text));
    const before = this.#own.get(id);
    if (before !== undefined) {
      // Exporters send again what they got no answer to, and files overlap.
      if (JSON.stringify(before.claim) !== JSON.stringify(claim)) this.twice(span, workflow);
      return;
    }
    const parent = span.parentSpanId;
    this.#own.set(id, { start, parent, workflow, claim });
    if (textIn(span, "error.type") !== undefined) this.failed.add(span.traceId);
    if (!this.isAsked(workflow)) return;
    if (span.end < span.start) this.endsEarly(span, workflow);
    if (claim === undefined) return;
    const claims = this.claims.get(claim.workflow);
    if (claims === undefined) this.claims.set(claim.workflow, [claim]);
    else claims.push(claim);
  }

  /** Tells of spans that began before what they are part of. */
  checkParents(toleranceMs: number): void {
    for (const [id, { start, parent, workflow }] of this.#own) {
      if (parent === undefined || !this.isAsked(workflow)) continue;
      const traceId = id.slice(0, TRACE_ID_LENGTH);
      const above = this.#own.get(traceId + parent)?.start ?? this.#others.get(traceId + parent);
      // One that is not there was not sampled, or is on its way.
      if (above === undefined || above - start <= toleranceMs) continue;
      this.finder.problem("clock-skew", {
        workflow,
        traceId,
        spanId: id.slice(TRACE_ID_LENGTH),
        detail: `it began ${lasting(above - start)} before span ${parent}, which it is part of`,
        remedy: CLOCKS,
      });
    }
  }

  /** Whether two claims were made within one piece of work of agstate's, and so by one process and its clock. */
  shareWork(a: Claim, b: Claim): boolean {
    if (a.traceId !== b.traceId) return false;
    const above = new Set(this.#workOf(a));
    for (const id of this.#workOf(b)) if (above.has(id)) return true;
    return false;
  }

  *#workOf({ traceId, spanId }: Claim): Generator<string> {
    const seen = new Set<string>();
    for (let id: string | undefined = spanId; id !== undefined && !seen.has(id); ) {
      const own = this.#own.get(traceId + id);
      if (own === undefined) return;
      seen.add(id);
      yield id;
      id = own.parent;
    }
  }

  private same(text: string): string {
    const known = this.#texts.get(text);
    if (known !== undefined) return known;
    if (this.#texts.size < TEXTS_MAX) this.#texts.set(text, text);
    return text;
  }

  private isAsked(workflow: string | null): boolean {
    return this.workflow === undefined || this.workflow === workflow;
  }

  private twice({ traceId, spanId }: TraceSpan, workflow: string | null): void {
    if (!this.isAsked(workflow)) return;
    this.finder.problem("duplicate-span", {
      workflow,
      traceId,
      spanId,
      detail: "two spans have this id and say different things",
      remedy:
        "one of them was changed after it was exported: compare them, and where each comes from",
    });
  }

  private endsEarly({ traceId, spanId, start, end }: TraceSpan, workflow: string | null): void {
    this.finder.problem("clock-skew", {
      workflow,
      traceId,
      spanId,
      detail: `it ends ${lasting(millisecondsOf(start - end))} before it begins`,
      remedy: CLOCKS,
    });
  }
}

const TRACE_ID_LENGTH = 32;

/** How many texts are known at most. */
const TEXTS_MAX = 10_000;
