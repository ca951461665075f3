import {
  attributesOf,
  elementsOf,
  idOf,
  membersOf,
  nanosecondsOf,
  type Part,
  textOf,
  wrongPart,
} from "./otlp-values.js";
import type { TraceSpan } from "./trace-span.js";

const TRACE_ID_BYTES = 16;
const SPAN_ID_BYTES = 8;

/** What a document's spans stand under: a request's, or what Tempo answers. */
const RESOURCES = ["resourceSpans", "batches"] as const;

/** What collectors write beside spans, to the same file if they are told so. */
const OTHER_SIGNALS = ["resourceMetrics", "resourceLogs", "resourceProfiles"] as const;

/**
 * Gives the spans of a document in OTLP JSON: an `ExportTraceServiceRequest`, a list of such, or a trace as Tempo's API answers
 * it; ids in hex or base64. What tells of metrics or logs has none.
 *
 * @throws AgstateError `INVALID_ARGUMENT`
 */
export function* spansOf(document: Part): Generator<TraceSpan, void, undefined> {
  const { value, where } = document;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++)
      yield* spansOf({ value: value[i], where: `${where}: [${i}]` });
    return;
  }
  if (typeof value !== "object" || value === null) throw wrongPart(document, "an object");
  const members = membersOf(document);
  const key = RESOURCES.find((name) => members[name] !== undefined);
  if (key !== undefined) yield* spansUnder({ value: members[key], where: `${where}: ${key}` });
  else if (members.trace !== undefined) {
    yield* spansOf({ value: members.trace, where: `${where}: trace` });
  } else if (Object.keys(members).length > 0 && !OTHER_SIGNALS.some((name) => name in members)) {
    throw wrongPart(document, 'an object with "resourceSpans"');
  }
}

function* spansUnder(resources: Part): Generator<TraceSpan, void, undefined> {
  for (const [i, resource] of elementsOf(resources).entries()) {
    const of = `${resources.where}[${i}]`;
    const { scopeSpans } = membersOf({ value: resource, where: of });
    const groups = { value: scopeSpans, where: `${of}.scopeSpans` };
    for (const [j, group] of elementsOf(groups).entries()) {
      const where = `${groups.where}[${j}]`;
      const { scope, spans } = membersOf({ value: group, where });
      const { name } = membersOf({ value: scope, where: `${where}.scope` });
      const made = textOf({ value: name, where: `${where}.scope.name` });
      const list = elementsOf({ value: spans, where: `${where}.spans` });
      for (let k = 0; k < list.length; k++) {
        yield spanOf({ value: list[k], where: `${where}.spans[${k}]` }, made);
      }
    }
  }
}

function spanOf(part: Part, scope: string): TraceSpan {
  const members = membersOf(part);
  const member = (name: string): Part => ({
    value: members[name],
    where: `${part.where}.${name}`,
  });
  const own = (name: string, bytes: number): string => {
    const id = idOf(member(name), bytes);
    if (id === undefined) throw wrongPart(member(name), "an id, as each span has one");
    return id;
  };
  return {
    traceId: own("traceId", TRACE_ID_BYTES),
    spanId: own("spanId", SPAN_ID_BYTES),
    parentSpanId: idOf(member("parentSpanId"), SPAN_ID_BYTES),
    scope,
    name: textOf(member("name")),
    start: nanosecondsOf(member("startTimeUnixNano")),
    end: nanosecondsOf(member("endTimeUnixNano")),
    attributes: attributesOf(member("attributes")),
  };
}
