import type { AuditTrail } from "../../store/audit/trail.js";
import type { AuditEvent, AuditOptions } from "../../store/audit/types.js";
import { AuditFile } from "../audit-file.js";
import { AuditLines } from "../audit-lines.js";
import { AuditTable } from "../render/audit.js";
import { escapeLine } from "../render/escape.js";
import type { Session } from "../session.js";

interface Options {
  readonly follow?: boolean;
  readonly maxCount?: number;
  readonly since?: string;
  readonly to?: string;
}

/** How many lines are written to a file, and waited for, at once. */
const FILE_BATCH = 1000;

/** `agstate audit [list] [REFS]`. */
export async function run(
  session: Session,
  args: readonly string[],
  options: Options,
): Promise<undefined> {
  const workflow = await session.workflow();
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
  const how: AuditOptions = {
    ...(args[0] === undefined ? {} : { refs: args[0] }),
    ...(options.maxCount === undefined ? {} : { limit: options.maxCount }),
    follow: options.follow === true,
    signal: stop.signal,
  };
  const follows = `Following workflow ${escapeLine(workflow.id)}; Ctrl-C ends it.`;
  if (options.to !== undefined) {
    const file = await AuditFile.open(options.to);
    try {
      const { cursor, after } = file.position;
      const from = cursor === null ? {} : { from: cursor };
      const trail = workflow.audit({ ...how, ...from, seen: after });
      if (options.follow === true) session.out.note(follows);
      await appendTo(file, trail);
    } finally {
      await file.close();
    }
    return;
  }
  const trail = workflow.audit({
    ...how,
    ...(options.since === undefined ? {} : { from: options.since }),
  });
  if (options.follow === true) session.out.note(follows);
  await (session.out.json ? printJson(session, trail) : print(session, trail));
}

async function appendTo(file: AuditFile, trail: AuditTrail): Promise<void> {
  const lines = new AuditLines(trail);
  let batch: string[] = [];
  for await (const event of trail) {
    batch.push(lines.lineOf(event, false));
    // Nothing waits in memory for what may come much later.
    if (trail.ready > 0 && batch.length < FILE_BATCH) continue;
    await file.append(batch);
    batch = [];
  }
  if (batch.length > 0) await file.append(batch);
}

/** The last line before it ends, or may wait, has a cursor in any case: somebody may want to go on from it. */
async function printJson({ out }: Session, trail: AuditTrail): Promise<void> {
  const lines = new AuditLines(trail);
  for await (const event of trail) await out.raw(`${lines.lineOf(event, trail.ready === 0)}\n`);
}

async function print({ out }: Session, trail: AsyncIterable<AuditEvent>): Promise<void> {
  const table = new AuditTable(out.paint);
  for await (const event of trail) {
    for (const line of table.linesOf(event)) await out.line(line);
  }
}
