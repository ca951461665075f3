import { columns } from "../render/columns.js";
import { formatDate } from "../render/commit.js";
import { escapeLine } from "../render/escape.js";
import type { Session } from "../session.js";

/** `agstate keys show`. */
export async function run(session: Session): Promise<undefined> {
  const { out } = session;
  const workflow = await session.workflow();
  const { keyed, subjects, classification } = workflow.info;
  const key = await workflow.keyInfo();
  if (out.json) return void (await out.value({ workflow: workflow.id, keyed, key }));
  const none = out.paint.dim("none");
  const encrypted =
    keyed === "payloads" ? "yes, AES-SIV" : keyed === "hashes" ? "no; hashes are keyed" : "no";
  const rows = [
    ["Workflow", out.paint.bold(escapeLine(workflow.id))],
    ["Classification", classification],
    ["Encrypted", encrypted],
  ];
  if (key !== null) {
    rows.push(["Key", key.keyName === null ? none : escapeLine(key.keyName)]);
    rows.push(["Version", key.version === null ? none : escapeLine(key.version)]);
    rows.push(["At hand", key.readable ? "yes" : "no: payloads are withheld"]);
  }
  if (key?.destroyed != null) {
    const { at, by } = key.destroyed;
    rows.push(["Destroyed", out.paint.bad(`${formatDate(at)} by ${escapeLine(by)}`)]);
  }
  rows.push(["Subjects", subjects.map(escapeLine).join(", ") || none]);
  for (const line of columns(rows)) await out.line(line);
}
