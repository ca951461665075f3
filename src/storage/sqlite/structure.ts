import type { Database } from "better-sqlite3";
import type { StructureProblem } from "../port.js";

/** How many findings of SQLite's own check are worth listing. */
const FINDINGS_MAX = 100;

/** Rows that contradict each other or themselves; each query answers one text a finding. */
const CHECKS: Readonly<Record<string, string>> = {
  "ref without its commit": `
    SELECT name || ' points to ' || lower(hex(id)) FROM refs r WHERE id IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM objects c WHERE c.wf = r.wf AND c.id = r.id AND c.type = 1)`,
  "commit whose parents do not parse": `
    SELECT lower(hex(id)) FROM objects
      WHERE type = 1 AND (parents IS NULL OR length(parents) % 32 <> 0)`,
  "commit whose generation contradicts its parents": `
    SELECT lower(hex(c.id)) FROM objects c
      LEFT JOIN objects p ON p.wf = c.wf AND p.id = substr(c.parents, 1, 32) AND p.type = 1
      WHERE c.type = 1 AND (c.generation IS NULL OR p.generation >= c.generation
        OR CASE WHEN length(c.parents) > 0 THEN c.generation = 1
          -- Of one that was cut from its parents the body tells what they were, after its tree.
          ELSE c.generation <> 1 AND substr(c.body, 71, 7) <> CAST('parent ' AS BLOB) END)`,
  "object of unknown kind or type": `
    SELECT lower(hex(id)) || ' has kind ' || kind || ', type ' || type FROM objects
      WHERE kind NOT IN (0, 1) OR type NOT IN (1, 2, 3)`,
  "row of a workflow that is not in the catalogue": `
    SELECT 'workflow number ' || wf FROM
      (SELECT wf FROM objects UNION SELECT wf FROM refs UNION SELECT wf FROM pending)
      WHERE wf NOT IN (SELECT wf FROM workflows)`,
};

/** Asks SQLite about its pages and indexes, then looks for rows that cannot be. */
export function checkStructure(db: Database): StructureProblem[] {
  const findings = db.pragma(`integrity_check(${FINDINGS_MAX})`) as { integrity_check: string }[];
  const problems: StructureProblem[] = findings
    .map((row) => row.integrity_check)
    .filter((detail) => detail !== "ok")
    .map((detail) => ({ what: "damaged file", detail }));
  for (const [what, sql] of Object.entries(CHECKS)) {
    for (const detail of db.prepare<[], string>(sql).pluck().iterate()) {
      problems.push({ what, detail });
    }
  }
  return problems;
}
