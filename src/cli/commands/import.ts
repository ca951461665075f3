import { basename } from "node:path";
import { AgstateError, isAgstateError } from "../../core/errors.js";
import type { Workflow } from "../../store/workflow.js";
import type { Store } from "../../store.js";
import { importTranscript, readTranscript } from "../../transcripts/import.js";
import { nameOfFile } from "../../transcripts/names.js";
import type { TranscriptFormat } from "../../transcripts/types.js";
import { readInput } from "../input.js";
import { escapeLine } from "../render/escape.js";
import { plural } from "../render/sizes.js";
import type { Session } from "../session.js";
import { type CheckpointsFrom, importFrom } from "./import-checkpoints.js";

interface Options {
  readonly format?: TranscriptFormat;
  readonly agents?: boolean;
  readonly from?: CheckpointsFrom;
}

/** `agstate import FILE`: into a new workflow named after the file, or into the one that `-w` names; `--from`: checkpoints. */
export async function run(
  session: Session,
  args: readonly string[],
  options: Options,
): Promise<undefined> {
  const { out } = session;
  const file = args[0] as string;
  if (options.from !== undefined) {
    if (session.options.workflow !== undefined) {
      throw new AgstateError(
        "INVALID_ARGUMENT",
        "--from imports every thread into a workflow of its own; leave out -w",
      );
    }
    return importFrom(session, options.from, file);
  }
  const name = basename(file);
  const format = options.format ?? (/\.traj(\.json)?$/.test(name) ? "swe-agent" : "messages");
  const transcript = readTranscript(await readInput(file), format, name);
  const { store, created } = await session.storeForImport();
  const workflow = await target(session, store, nameOfFile(name));
  const progress = process.stderr.isTTY === true && !out.json;
  const result = await importTranscript(workflow, transcript, {
    agents: options.agents === true,
    onProgress: ({ commits, total }) => {
      if (progress) process.stderr.write(`\r${commits} of ${total} commits`);
    },
  });
  if (progress) process.stderr.write("\r\u001b[K");
  if (out.json) return void (await out.value({ workflow: workflow.id, ...result }));
  if (created !== null) await out.line(`Made a store in ${escapeLine(created)}.`);
  const id = escapeLine(workflow.id);
  await out.line(
    `Imported ${plural(result.commits, "commit")} on ${plural(result.branches.length, "branch", "branches")} into workflow ${id}.`,
  );
  await out.line(`Next: agstate log --graph --oneline --all -w ${id}`);
}

async function target(session: Session, store: Store, name: string): Promise<Workflow> {
  const given = session.namedWorkflow();
  if (given === undefined) return store.createWorkflow(name);
  try {
    return await store.workflow(given);
  } catch (error) {
    if (!isAgstateError(error, "WORKFLOW_NOT_FOUND")) throw error;
    return store.createWorkflow(given);
  }
}
