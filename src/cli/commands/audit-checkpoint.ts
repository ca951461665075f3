import { open } from "node:fs/promises";
import { AgstateError } from "../../core/errors.js";
import { quoteForMessage } from "../../core/names.js";
import { checkpointText } from "../../store/audit/checkpoint.js";
import { readInput } from "../input.js";
import { escapeLine } from "../render/escape.js";
import { plural } from "../render/sizes.js";
import type { Session } from "../session.js";

interface Options {
  readonly key: string;
  readonly out?: string;
}

/** `agstate audit checkpoint --key FILE`. */
export async function run(
  session: Session,
  _args: readonly string[],
  { key, out: file }: Options,
): Promise<undefined> {
  const { out } = session;
  const workflow = await session.workflow();
  const checkpoint = await workflow.signAuditCheckpoint((await readInput(key)).toString());
  const text = checkpointText(checkpoint);
  if (file === undefined) return out.raw(text) as Promise<undefined>;
  await writeNew(file, text);
  const { refs } = checkpoint.statement;
  if (out.json) return;
  await out.line(`Signed where ${plural(refs.length, "log")} stand: ${escapeLine(file)}`);
}

/** An older checkpoint is never written over: it vouches for what this one may not. */
async function writeNew(file: string, text: string): Promise<void> {
  try {
    const handle = await open(file, "wx");
    try {
      await handle.writeFile(text);
      await handle.sync();
    } finally {
      await handle.close();
    }
  } catch (cause) {
    throw new AgstateError(
      "INVALID_ARGUMENT",
      `cannot write ${quoteForMessage(file)}: ${(cause as Error).message}`,
      { file },
      { cause },
    );
  }
}
