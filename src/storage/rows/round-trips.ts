import {
  type Attributes,
  NO_TELEMETRY,
  type Place,
  type Span,
  type Telemetry,
} from "../../core/telemetry.js";

/** What a call brings. */
export interface Bringing {
  /** What tells of the commits in it. */
  readonly spans?: readonly Span[] | undefined;
  /** How many writes. */
  readonly batch?: number | undefined;
}

/** What a call to a database is for. */
export interface Asked extends Bringing {
  /** What it does, in a word. */
  readonly operation: string;
  /** Where it was asked for, where no commit in it tells; default here. */
  readonly at?: Place | undefined;
}

/** What is called, by OpenTelemetry's conventions. */
export type DatabasePlace = Pick<
  Attributes,
  "db.system.name" | "db.namespace" | "server.address" | "server.port"
>;

/** How a database's errors are told. */
export interface ErrorsOf {
  /** What it says of why it failed, as `db.response.status_code`; empty where it says nothing. */
  readonly codeOf: (error: unknown) => string;
  /** The error without values of the statement: spans may hold its message. */
  readonly toldError: (error: unknown) => unknown;
}

/**
 * Tells of each call to a database, by OpenTelemetry's conventions for database clients.
 *
 * A call that brings several writes is one, below the first of them, and linked with the commits of all.
 */
export class RoundTrips {
  private readonly measured: Omit<DatabasePlace, "db.namespace">;

  constructor(
    private readonly telemetry: Telemetry = NO_TELEMETRY,
    private readonly database: DatabasePlace,
    /** What names of spans say of it. */
    private readonly target: string,
    private readonly errors: ErrorsOf,
  ) {
    // There may be very many of them.
    const { "db.namespace": _, ...measured } = database;
    this.measured = measured;
  }

  async run<T>(asked: Asked, work: () => Promise<T>): Promise<T> {
    const trip = this.begin(asked);
    try {
      const result = await trip.span.within(work);
      this.end(asked, trip);
      return result;
    } catch (error) {
      this.fail(asked, trip, error);
      throw error;
    }
  }

  /** The same where the database is in this process. */
  runHere<T>(asked: Asked, work: () => T): T {
    const trip = this.begin(asked);
    try {
      const result = work();
      this.end(asked, trip);
      return result;
    } catch (error) {
      this.fail(asked, trip, error);
      throw error;
    }
  }

  /** So long a connection was waited for. */
  waited(seconds: number): void {
    this.telemetry.measure("db.client.connection.wait_time", seconds, this.measured);
  }

  private begin({ operation, at, spans = [], batch }: Asked): Trip {
    const [first] = spans;
    const links = spans.length > 1 ? spans.flatMap(({ traceparent }) => traceparent ?? []) : [];
    const span = this.telemetry.span(`${operation} ${this.target}`, {
      client: true,
      at: first?.place ?? at,
      links,
    });
    if (span.isRecording) {
      span.set({ ...this.database, "db.operation.name": operation });
      // One is no batch, by the conventions.
      if (batch !== undefined && batch > 1) span.set({ "db.operation.batch.size": batch });
      if (spans.length > 1) for (const each of spans) each.link(span.traceparent);
    }
    return { span, since: this.telemetry.isCounting ? performance.now() : 0 };
  }

  private end({ operation }: Asked, { span, since }: Trip): void {
    span.end();
    if (since === 0) return;
    const by = { ...this.measured, "db.operation.name": operation };
    this.telemetry.measure("db.client.operation.duration", secondsSince(since), by);
  }

  private fail({ operation }: Asked, { span, since }: Trip, error: unknown): void {
    const status = this.errors.codeOf(error);
    const type = status === "" ? this.telemetry.errorType(error) : status;
    if (status !== "") span.set({ "db.response.status_code": status });
    span.fail(this.errors.toldError(error), type);
    if (since === 0) return;
    const by = {
      ...this.measured,
      "db.operation.name": operation,
      "error.type": type,
    };
    this.telemetry.measure("db.client.operation.duration", secondsSince(since), by);
  }
}

interface Trip {
  readonly span: Span;
  /** 0 where nobody measures. */
  readonly since: number;
}

const secondsSince = (since: number) => (performance.now() - since) / 1000;
