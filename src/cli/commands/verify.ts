import { createReadStream } from "node:fs";
import { AgstateError } from "../../core/errors.js";
import { quoteForMessage } from "../../core/names.js";
import type { TraceSpan } from "../../tracing/trace-span.js";
import { toleranceMsOf } from "../duration.js";
import { EXIT } from "../exit-codes.js";
import { printTraceReport } from "../render/trace.js";
import type { Session } from "../session.js";

interface Options {
  readonly trace?: readonly string[];
  readonly tolerance?: string;
}

/** `agstate verify --trace`: holds exported spans against the store. */
export async function run(
  session: Session,
  _args: readonly string[],
  { trace, tolerance }: Options,
): Promise<undefined | number> {
  if (trace === undefined) {
    throw new AgstateError(
      "INVALID_ARGUMENT",
      "nothing to verify against is given; name exported spans, in OTLP JSON, with --trace FILE (- for standard input); the store by itself is checked by agstate fsck, its logs by agstate audit verify",
    );
  }
  const toleranceMs = tolerance === undefined ? undefined : toleranceMsOf(tolerance);
  const { verifyTrace } = await import("../../store/trace/verify.js");
  const source = (await session.regions()) ?? (await session.store());
  const workflow = session.namedWorkflow();
  const report = await verifyTrace(source, spansOf(trace), { workflow, toleranceMs });
  const { out } = session;
  if (out.json) await out.value(report);
  else await printTraceReport(out, report);
  return report.problems.length === 0 ? undefined : EXIT.damaged;
}

/** The spans of files, one after the other; `-` is standard input. */
async function* spansOf(files: readonly string[]): AsyncGenerator<TraceSpan, void, undefined> {
  const { readTrace } = await import("../../tracing/read-trace.js");
  for (const file of files) {
    if (file === "-") yield* readTrace(process.stdin, "standard input");
    else yield* readTrace(chunksOf(file), file);
  }
}

async function* chunksOf(file: string): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    for await (const chunk of createReadStream(file)) yield chunk as Uint8Array;
  } catch (cause) {
    throw new AgstateError(
      "INVALID_ARGUMENT",
      `cannot read ${quoteForMessage(file)}: ${(cause as Error).message}`,
      { file },
      { cause },
    );
  }
}
