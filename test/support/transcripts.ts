import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { AgstateError } from "../../src/core/errors.js";
import { readTranscript } from "../../src/transcripts/read.js";
import type { Transcript, TranscriptFormat } from "../../src/transcripts/types.js";

/** A file of `test/fixtures/transcripts`. */
export function fixture(name: string): string {
  return fileURLToPath(new URL(`../fixtures/transcripts/${name}`, import.meta.url));
}

export function readFixture(name: string, format: TranscriptFormat): Transcript {
  return readTranscript(readFileSync(fixture(name)), format, name);
}

/** The error that reading the text as a transcript throws. */
export function readingError(text: string, format: TranscriptFormat): AgstateError {
  try {
    readTranscript(text, format, "file.json");
  } catch (error) {
    if (error instanceof AgstateError) return error;
    throw error;
  }
  throw new Error("it was accepted");
}
