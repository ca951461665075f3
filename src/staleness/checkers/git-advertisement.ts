/**
 * Reads what a server advertises of its refs by Git's smart HTTP protocol (gitprotocol-http, gitprotocol-pack; version 0 or 1).
 *
 * All of it is read, to its very end: of an answer that was cut off nobody knows which refs it lacks.
 *
 * @returns ids by the refs' full names; null for anything else than a whole advertisement
 */
export function parseAdvertisement(bytes: Buffer): ReadonlyMap<string, string> | null {
  const packets = packetsOf(bytes);
  if (packets === null) return null;
  const [service, flush, ...rest] = packets;
  if (service === FLUSH || withoutNewline(service) !== SERVICE || flush !== FLUSH) return null;
  if (rest.pop() !== FLUSH || rest.includes(FLUSH)) return null;
  const lines = rest.map((packet) => withoutNewline(packet as string) as string);
  if (lines[0] === "version 1") lines.shift();
  return refsOf(lines);
}

const SERVICE = "# service=git-upload-pack";
const FLUSH = null;

/** The packets of a stream of pkt-lines, null for a flush; null when they do not fill it. */
function packetsOf(bytes: Buffer): (string | null)[] | null {
  const packets: (string | null)[] = [];
  for (let at = 0; at < bytes.length; ) {
    const digits = bytes.toString("latin1", at, at + 4);
    if (!/^[0-9a-f]{4}$/i.test(digits)) return null;
    const length = Number.parseInt(digits, 16);
    if (length === 0) {
      packets.push(FLUSH);
      at += 4;
      continue;
    }
    // 1 to 3 mean something in other versions of the protocol, and 4 is a packet without anything.
    if (length <= 4 || at + length > bytes.length) return null;
    packets.push(bytes.toString("utf8", at + 4, at + length));
    at += length;
  }
  return packets;
}

function withoutNewline(packet: string | null | undefined): string | null | undefined {
  return packet?.endsWith("\n") ? packet.slice(0, -1) : packet;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: names have none
const REF = /^([0-9a-f]{40}|[0-9a-f]{64}) ([^\u0000-\u0020\u007f]+)$/i;
const SHALLOW = /^shallow (?:[0-9a-f]{40}|[0-9a-f]{64})$/i;
const NO_REFS = /^0+ capabilities\^\{\}$/;

function refsOf(lines: readonly string[]): ReadonlyMap<string, string> | null {
  const refs = new Map<string, string>();
  let last = "";
  for (const [i, line] of lines.entries()) {
    if (i > 0 && SHALLOW.test(line)) continue;
    // Behind a NUL the first says what the server can do.
    const text = i === 0 ? line.replace(/\0[^\0]*$/, "") : line;
    if (i === 0 && NO_REFS.test(text) && text !== line) continue;
    const [, id, name] = REF.exec(text) ?? [];
    if (id === undefined || name === undefined || refs.has(name)) return null;
    if (i === 0 && text === line) return null;
    // What a tag is of comes right after the tag.
    if (name.endsWith("^{}") && name !== `${last}^{}`) return null;
    refs.set(name, id.toLowerCase());
    last = name;
  }
  return refs;
}
