import { decodeValue } from "../../objects/decode.js";
import { EVENTS_REF } from "../../refs/names.js";
import { parseAuditRecord } from "../audit/record.js";
import { recordEach } from "../audit/tally.js";
import { lineFrom } from "../line.js";
import type { Repository } from "../repository.js";
import type { KnownExport } from "./types.js";

/** How many records one call reads. */
const PAGE = 100;

/** Puts into the audit that a copy of the workflow was written to a directory, so that it is known where others are. */
export async function recordExport(
  repository: Repository,
  directory: string,
  by: string,
  tips: readonly string[],
): Promise<void> {
  await recordEach(repository, {
    kind: "exported",
    actor: by,
    says: `export: ${tips.length} refs`,
    facts: { directory, refs: tips.length, tips: tips.map((id) => id.slice(0, 12)).join(" ") },
  });
}

/** Copies of the workflow outside of the store, the last one first. */
export async function knownExports(repository: Repository): Promise<KnownExport[]> {
  const row = await repository.refs.row(EVENTS_REF);
  if (row === undefined || row.id === null) return [];
  const found: KnownExport[] = [];
  for await (const { commit, objects } of lineFrom(repository, row.id, "state", PAGE)) {
    const link = commit.root.state;
    const record = parseAuditRecord(link && (await decodeValue(objects, link)));
    if (record?.kind !== "exported") continue;
    const { directory } = record.facts;
    if (typeof directory !== "string") continue;
    found.push({ directory, by: commit.author, at: new Date(commit.authorTime * 1000) });
  }
  return found;
}
