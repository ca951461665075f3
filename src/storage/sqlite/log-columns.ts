import type { ReflogEntry } from "../../core/reflog-entry.js";

type Said = Pick<ReflogEntry, "actor" | "reason" | "trace">;

/** The same three texts, null where the commit's own body says them. */
export type SaidColumns = { readonly [Field in keyof Said]: string | null };

/**
 * What a commit's body says about the move that brought it: the author's name
 * as actor, the first line of the message as reason, the trace header as
 * trace (none: the empty string).
 */
function saidByBody(body: Uint8Array): Said {
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("utf8");
  const split = text.indexOf("\n\n");
  const header = split < 0 ? `${text}\n` : text.slice(0, split + 1);
  const message = split < 0 ? "" : text.slice(split + 2);
  const author = line(header, "author");
  const end = message.indexOf("\n");
  return {
    actor: author.slice(0, Math.max(0, author.lastIndexOf(" <"))),
    reason: end < 0 ? message : message.slice(0, end),
    trace: line(header, "agstate-trace"),
  };
}

/** The rest of the first header line that begins with the word, or the empty string. */
function line(header: string, word: string): string {
  const at = header.indexOf(`\n${word} `);
  if (at < 0) return "";
  const start = at + word.length + 2;
  return header.slice(start, header.indexOf("\n", start));
}

/** Leaves out of a log entry's columns what the commit's body gives back. */
export function shortenSaid(said: Said, body: Uint8Array): SaidColumns {
  const known = saidByBody(body);
  return {
    actor: said.actor === known.actor ? null : said.actor,
    reason: said.reason === known.reason ? null : said.reason,
    trace: said.trace === known.trace ? null : said.trace,
  };
}

/** The inverse of {@link shortenSaid}, with the same body. */
export function completeSaid(columns: SaidColumns, body: Uint8Array): Said {
  const known = saidByBody(body);
  return {
    actor: columns.actor ?? known.actor,
    reason: columns.reason ?? known.reason,
    trace: columns.trace ?? known.trace,
  };
}
