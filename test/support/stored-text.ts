import type { Workflow } from "../../src/index.js";

/** Whether a text is anywhere in what a workflow stores: bodies, rows, logs. */
export async function stored(workflow: Workflow, text: string): Promise<string[]> {
  const { storage } = workflow.internals;
  const places: string[] = [];
  const look = (place: string, bytes: Uint8Array | string) => {
    if (Buffer.from(bytes as Uint8Array).includes(text)) places.push(place);
  };
  for (const o of (await storage.scanObjects(workflow.id, null, 100_000)).rows)
    look(o.id, "body" in o ? o.body : o.tombstone);
  for (const c of (await storage.scanCommits(workflow.id, null, 100_000)).rows) {
    look(`commit ${c.id}`, c.body);
    for (const o of c.inline) look(`in ${c.id}`, "body" in o ? o.body : o.tombstone);
  }
  for (const r of (await storage.scanPending(workflow.id, null, 100_000)).rows)
    look(`pending ${r.key}`, r.body);
  return places;
}
