import {
  type Attributes as ApiAttributes,
  type Counter,
  createNoopMeter,
  type Histogram,
  type Meter,
  type MeterProvider,
  metrics,
  type UpDownCounter,
} from "@opentelemetry/api";
import type { CounterName, HistogramName, MeasuredBy } from "../core/telemetry.js";
import { VERSION } from "../core/version.js";
import { SCOPE } from "./scope.js";

/** What is counted: unit and description. */
const COUNTERS: Readonly<Record<CounterName, readonly [unit: string, description: string]>> = {
  "agstate.commits": ["{commit}", "Commits that have landed"],
  "agstate.commit.failures": ["{failure}", "Commits that did not land"],
  "agstate.commit.bytes": ["By", "Bytes of commits that have landed, with their objects"],
  "agstate.cas.retries": ["{retry}", "Moves made again because another had moved the ref"],
  "agstate.merge.conflicts": ["{conflict}", "Conflicts that merges left open"],
  "agstate.steps.in_doubt": ["{step}", "Steps begun and not sealed, of which nobody knows"],
};

/** What nobody may miss the first of, and has no attributes by which it would have to be told apart. */
const FROM_ZERO = ["agstate.merge.conflicts", "agstate.steps.in_doubt"] as const;

const SECONDS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
];

/** What is measured: unit, description, and the bounds of its buckets. */
const HISTOGRAMS: Readonly<
  Record<HistogramName, readonly [unit: string, description: string, bounds: number[]]>
> = {
  "agstate.commit.duration": ["s", "From when a commit is made until it has landed", SECONDS],
  "agstate.group.size": [
    "{write}",
    "Writes that go to the store in one call",
    [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024],
  ],
  "db.client.operation.duration": ["s", "Duration of database client operations", SECONDS],
  "db.client.connection.wait_time": [
    "s",
    "How long a connection of the pool was waited for",
    SECONDS,
  ],
};

interface Instruments {
  readonly counters: Readonly<Record<CounterName, Counter>>;
  readonly histograms: Readonly<Record<HistogramName, Histogram>>;
  readonly depth: UpDownCounter;
}

/** The instruments of whoever collects measurements now. */
export class Meters {
  private provider: MeterProvider | undefined;
  private made: Instruments | undefined;

  get isCounting(): boolean {
    return this.instruments() !== undefined;
  }

  count(name: CounterName, value: number, by?: MeasuredBy): void {
    this.instruments()?.counters[name].add(value, by as ApiAttributes);
  }

  measure(name: HistogramName, value: number, by?: MeasuredBy): void {
    this.instruments()?.histograms[name].record(value, by as ApiAttributes);
  }

  queued(change: number): void {
    this.instruments()?.depth.add(change);
  }

  /** Made anew when somebody else collects: unlike tracers, those that were made before stay mute. */
  private instruments(): Instruments | undefined {
    const provider = metrics.getMeterProvider();
    if (provider !== this.provider) {
      this.provider = provider;
      const meter = provider.getMeter(SCOPE, VERSION);
      this.made = meter === createNoopMeter() ? undefined : makeInstruments(meter);
    }
    return this.made;
  }
}

function makeInstruments(meter: Meter): Instruments {
  const counters = Object.entries(COUNTERS).map(([name, [unit, description]]) => [
    name,
    meter.createCounter(name, { unit, description }),
  ]);
  const histograms = Object.entries(HISTOGRAMS).map(([name, [unit, description, bounds]]) => [
    name,
    meter.createHistogram(name, {
      unit,
      description,
      advice: { explicitBucketBoundaries: bounds },
    }),
  ]);
  const counted: Instruments["counters"] = Object.fromEntries(counters);
  // From where there is nothing yet, so that the first one of what is rare is seen as one more.
  for (const name of FROM_ZERO) counted[name].add(0);
  return {
    counters: counted,
    histograms: Object.fromEntries(histograms),
    depth: meter.createUpDownCounter("agstate.queue.depth", {
      unit: "{write}",
      description: "Writes that wait to go to the store",
    }),
  };
}
