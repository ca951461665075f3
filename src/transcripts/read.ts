import { AgstateError } from "../core/errors.js";
import { quoteForMessage } from "../core/names.js";
import { decodeText } from "../objects/utf8-text.js";
import { readMessages } from "./messages.js";
import { Place } from "./place.js";
import { readSweAgent } from "./swe-agent.js";
import { TRANSCRIPT_FORMATS, type Transcript, type TranscriptFormat } from "./types.js";

/**
 * Reads a file of agent transcripts: `messages`, conversations in the OpenAI
 * chat format, or `swe-agent`, a run of SWE-agent.
 *
 * All of the file is read and checked before it returns.
 *
 * @param file the file's name: branches are named after it, and messages say it
 * @throws AgstateError `INVALID_TRANSCRIPT`, `LIMIT_EXCEEDED`, `INVALID_ARGUMENT`
 */
export function readTranscript(
  input: string | Uint8Array,
  format: TranscriptFormat,
  file: string,
): Transcript {
  if (!TRANSCRIPT_FORMATS.includes(format)) {
    throw new AgstateError(
      "INVALID_ARGUMENT",
      `there is no transcript format ${quoteForMessage(String(format))}; there are ${TRANSCRIPT_FORMATS.join(" and ")}`,
      { format: String(format) },
    );
  }
  const text = new Place(file).checking(() => decodeText(input, "the file"));
  const read = format === "messages" ? readMessages : readSweAgent;
  return { file, conversations: read(text, file) };
}
