import type { SpanContext } from "@opentelemetry/api";
import { JsonTraceSerializer } from "@opentelemetry/otlp-transformer";
import { resourceFromAttributes } from "@opentelemetry/resources";
import type { ReadableSpan } from "@opentelemetry/sdk-trace-node";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readTrace, type SpanValue, type TraceSpan } from "../../src/index.js";
import { agstateError, all } from "../support/stores.js";

/** What the real serializer makes of spans. */
function serialized(spans: readonly ReadableSpan[]): string {
  return Buffer.from(JsonTraceSerializer.serializeRequest([...spans]) ?? []).toString();
}

interface Given {
  readonly traceId: string;
  readonly spanId: string;
  readonly parent: string | undefined;
  readonly scope: string;
  readonly name: string;
  readonly start: readonly [number, number];
  readonly end: readonly [number, number];
  readonly attributes: Readonly<Record<string, unknown>>;
}

const resource = resourceFromAttributes({ "service.name": "tests" });

/** A span as the SDK ends one. */
function ended(given: Given): ReadableSpan {
  const context = (spanId: string): SpanContext => ({
    traceId: given.traceId,
    spanId,
    traceFlags: 1,
  });
  return {
    name: given.name,
    kind: 0,
    spanContext: () => context(given.spanId),
    ...(given.parent === undefined ? {} : { parentSpanContext: context(given.parent) }),
    startTime: [...given.start],
    endTime: [...given.end],
    status: { code: 0 },
    attributes: given.attributes as ReadableSpan["attributes"],
    links: [],
    events: [],
    duration: [0, 0],
    ended: true,
    resource,
    instrumentationScope: { name: given.scope, version: "1.0.0" },
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}

function nanoseconds([seconds, rest]: readonly [number, number]): bigint {
  return BigInt(seconds) * 1_000_000_000n + BigInt(rest);
}

function asRead(value: unknown): SpanValue {
  if (value === undefined || value === null) return null;
  if (Array.isArray(value)) return value.map(asRead);
  if (value instanceof Uint8Array) return value;
  if (typeof value !== "object") return value as SpanValue;
  return new Map(Object.entries(value).map(([key, of]) => [key, asRead(of)]));
}

function expected(given: Given): TraceSpan {
  return {
    traceId: given.traceId,
    spanId: given.spanId,
    parentSpanId: given.parent,
    scope: given.scope,
    name: given.name,
    start: nanoseconds(given.start),
    end: nanoseconds(given.end),
    attributes: asRead(given.attributes) as TraceSpan["attributes"],
  };
}

const hex = (bytes: number) =>
  fc
    .uint8Array({ minLength: bytes, maxLength: bytes })
    .map((raw) => Buffer.from(raw).toString("hex"))
    .filter((id) => !/^0+$/.test(id));
const time = fc.tuple(
  fc.integer({ min: 0, max: 4_000_000_000 }),
  fc.integer({ min: 0, max: 999_999_999 }),
);
const { value: attribute } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.string({ unit: "grapheme" }),
    fc.boolean(),
    fc.maxSafeInteger(),
    // JSON has no number for the others, and the SDK writes none.
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((double) => double + 0),
    fc.uint8Array({ maxLength: 20 }),
    fc.constant(null),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(fc.string(), tie("value"), { maxKeys: 4 }),
  ),
}));
const given: fc.Arbitrary<Given> = fc.record({
  traceId: hex(16),
  spanId: hex(8),
  parent: fc.option(hex(8), { nil: undefined }),
  scope: fc.constantFrom("agstate", "http", ""),
  name: fc.string(),
  start: time,
  end: time,
  attributes: fc.dictionary(fc.string(), attribute, { maxKeys: 6 }),
});

/** A text's bytes, cut anywhere. */
async function* chunks(text: string, size = 64 * 1024): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

function read(text: string, size?: number): Promise<TraceSpan[]> {
  return all(readTrace(chunks(text, size), "spans.json"));
}

const ONE: Given = {
  traceId: "0af7651916cd43dd8448eb211c80319c",
  spanId: "b7ad6b7169203331",
  parent: "00f067aa0ba902b7",
  scope: "agstate",
  name: "write_checkpoint",
  start: [1_700_000_000, 123_456_789],
  end: [1_700_000_000, 123_456_790],
  attributes: { branch: "canonical", "step.seq": 7, "checkpoint.success": true },
};
const TWO: Given = { ...ONE, spanId: "b7ad6b7169203332", name: "execute_step" };

describe("spans in OTLP JSON", () => {
  it("come back as the real serializer was given them, a request a line, cut anywhere", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(given, { minLength: 1, maxLength: 4 }), { maxLength: 4 }),
        fc.integer({ min: 1, max: 200 }),
        async (requests, size) => {
          const text = requests.map((spans) => `${serialized(spans.map(ended))}\n`).join("");
          // The serializer groups what has one scope.
          const grouped = requests.flatMap((spans) =>
            [...new Set(spans.map(({ scope }) => scope))].flatMap((scope) =>
              spans.filter((span) => span.scope === scope),
            ),
          );
          expect(await read(text, size)).toEqual(grouped.map(expected));
        },
      ),
    );
  });

  it("are read from one document over many lines, from a list of documents, and with a byte order mark", async () => {
    const text = serialized([ended(ONE), ended(TWO)]);
    const both = [expected(ONE), expected(TWO)];
    expect(await read(JSON.stringify(JSON.parse(text), null, 2))).toEqual(both);
    expect(await read(`[${text},\n${text}]`)).toEqual([...both, ...both]);
    expect(await read(`\ufeff\n\n${text}\r\n\n${text}`)).toEqual([...both, ...both]);
  });

  it("are read from what Tempo answers, whose ids are in base64", async () => {
    const asTempo = (text: string) =>
      text
        .replace(
          /"(traceId|spanId|parentSpanId)":"([0-9a-f]+)"/g,
          (_, key, id) => `"${key}":"${Buffer.from(id, "hex").toString("base64")}"`,
        )
        .replace(/"kind":1/g, '"kind":"SPAN_KIND_INTERNAL"');
    const { resourceSpans } = JSON.parse(asTempo(serialized([ended(ONE)])));
    const one = [expected(ONE)];
    expect(await read(JSON.stringify({ batches: resourceSpans }))).toEqual(one);
    expect(await read(JSON.stringify({ trace: { resourceSpans } }))).toEqual(one);
  });

  it("keep the nanoseconds of times that are numbers, and integers that no double holds", async () => {
    const text = serialized([ended(ONE)])
      .replace(/"(\w+TimeUnixNano)":"(\d+)"/g, '"$1": $2')
      .replace('"intValue":7', '"intValue":"9007199254740993"');
    const [span] = await read(text);
    expect(span?.start).toBe(nanoseconds(ONE.start));
    expect(span?.end).toBe(nanoseconds(ONE.end));
    expect(span?.attributes.get("step.seq")).toBe(9_007_199_254_740_993n);
  });

  it("pass over what tells of metrics and logs, and over parts that are not known", async () => {
    const text = serialized([ended(ONE)]).replace(
      '"spans":',
      '"schemaUrl":"x","later":[{}],"spans":',
    );
    const others = '{"resourceMetrics":[{}]}\n{"resourceLogs":[]}\n{}\n';
    expect(await read(others + text)).toEqual([expected(ONE)]);
    expect(await read("")).toEqual([]);
  });

  it.each([
    ["a torn last line", (one: string) => `${one}\n${one.slice(0, 40)}`, { line: 2 }, /line 2/],
    ["a damaged first line", (one: string) => `${one.slice(1)}\n${one}`, { line: 1 }, /line 1/],
    ["no JSON at all", () => "span 1\nspan 2\n", { line: 1 }, /not JSON/],
    ["another document", () => '{"spans":[]}', {}, /resourceSpans/],
    ["a number alone", () => "\n12\n", {}, /line 2 is 12, and is to be an object/],
    [
      "a short span id",
      (one: string) => one.replace(ONE.spanId, "b7ad"),
      {},
      /spans\[0\]\.spanId is "b7ad"/,
    ],
    ["no trace id", (one: string) => one.replace(ONE.traceId, "0".repeat(32)), {}, /traceId/],
    [
      "a time that is none",
      (one: string) => one.replace(/"1700[^"]*"/, '"soon"'),
      {},
      /startTimeUnixNano is "soon"/,
    ],
    [
      "a number that is none, which may be anybody's secret",
      (one: string) => one.replace('"intValue":7', '"intValue":"hunter2"'),
      {},
      /attributes\[1\]\.intValue is a text, and/,
    ],
    [
      "spans that are no list",
      (one: string) => one.replace(/"spans":\[.*\]/, '"spans":{}}]}]'),
      {},
      /spans is an object/,
    ],
  ])("are refused with the place of what is wrong: %s", async (_, make, details, message) => {
    const error = await read(make(serialized([ended(ONE)]))).catch((thrown: unknown) => thrown);
    expect(error).toEqual(agstateError("INVALID_ARGUMENT", details));
    expect((error as Error).message).toMatch(message);
    expect((error as Error).message).toContain("spans.json");
  });

  it("are refused in bytes that are no text, as those of a compressed file", async () => {
    async function* bytes() {
      yield Uint8Array.of(0x1f, 0x8b, 8, 0);
    }
    await expect(all(readTrace(bytes(), "spans.json.gz"))).rejects.toEqual(
      agstateError("INVALID_ARGUMENT", { file: "spans.json.gz", line: 1 }),
    );
  });

  it("are read a line at a time, however many there are", async () => {
    const line = `${serialized([ended(ONE)])}\n`;
    let given = 0;
    async function* endless() {
      for (;;) {
        given++;
        yield line;
      }
    }
    let count = 0;
    for await (const span of readTrace(endless())) {
      expect(span.spanId).toBe(ONE.spanId);
      // No more is taken from the source than was asked for.
      expect(given).toBeLessThanOrEqual(++count + 1);
      if (count === 1000) break;
    }
    expect(count).toBe(1000);
  });
});
