import type { Residue } from "./types.js";

/** Of what stands in a commit's own text. */
const COMMIT = "thin history, or delete the branches that have it and run gc";

/** What to do about what an erasure cannot change: all of it is in hashes that others rest on. */
const REMEDY: Readonly<Record<Residue["kind"], string>> = {
  message: COMMIT,
  author: COMMIT,
  "external-id": COMMIT,
  trace: COMMIT,
  log: "logs stay as long as the workflow; move on to another one",
  "ref-name": "delete the ref; its name stays in its log",
  "workflow-id": "move on to a workflow of another id",
  key: "erase again without keeping keys",
  graph: "messages, authors, logs and names stay; delete branches and run gc",
  audit: "records of the audit stay as long as the workflow",
};

export function residueOf(kind: Residue["kind"], at: string): Residue {
  return { kind, at, remedy: REMEDY[kind] };
}
