import {
  type Span as ApiSpan,
  type AttributeValue,
  type Context,
  context,
  diag,
  isSpanContextValid,
  SpanStatusCode,
  trace,
} from "@opentelemetry/api";
import type { JsonValue } from "../core/json.js";
import type { Attributes, PayloadName, Place, Span } from "../core/telemetry.js";
import { errorText, errorType } from "./error-type.js";
import type { Redactor } from "./redact.js";
import { formatTraceparent, parseTraceparent } from "./traceparent.js";

/** A span of OpenTelemetry's. */
export class TracedSpan implements Span {
  readonly isRecording: boolean;
  private inside: Context | undefined;
  private ended = false;
  private text: string | undefined;

  constructor(
    private readonly span: ApiSpan,
    private readonly under: Context,
    private readonly redact: Redactor | undefined,
  ) {
    this.isRecording = span.isRecording();
  }

  get traceparent(): string | undefined {
    if (this.text === undefined) {
      const spanContext = this.span.spanContext();
      this.text = isSpanContextValid(spanContext) ? formatTraceparent(spanContext) : "";
    }
    return this.text === "" ? undefined : this.text;
  }

  get place(): Place {
    this.inside ??= trace.setSpan(this.under, this.span);
    return this.inside as unknown as Place;
  }

  set(attributes: Attributes): void {
    if (!this.isRecording) return;
    // One by one: given together they are copied first.
    for (const key in attributes) {
      const value = attributes[key as keyof Attributes];
      if (value !== undefined) this.span.setAttribute(key, value as AttributeValue);
    }
  }

  payload(name: PayloadName, value: () => JsonValue | undefined): void {
    if (this.redact === undefined || !this.isRecording) return;
    const given = value();
    if (given !== undefined) this.span.setAttribute(name, this.redact.value(given));
  }

  link(traceparent: string | undefined): void {
    const to = traceparent === undefined ? undefined : parseTraceparent(traceparent);
    if (to !== undefined && this.isRecording) this.span.addLink({ context: to });
  }

  within<T>(work: () => T): T {
    return context.with(this.place as unknown as Context, work);
  }

  end(): void {
    if (this.ended) return;
    this.ended = true;
    try {
      this.span.end();
    } catch (error) {
      diag.error("agstate: a span could not be ended", error);
    }
  }

  fail(error: unknown, type = errorType(error)): void {
    if (this.ended) return;
    if (this.isRecording) {
      this.span.setAttribute("error.type", type);
      this.span.setStatus({ code: SpanStatusCode.ERROR, message: type });
      this.span.addEvent("exception", {
        "exception.type": type,
        ...(this.redact && { "exception.message": this.redact.text(errorText(error)) }),
      });
    }
    this.end();
  }
}
