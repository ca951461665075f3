import { closeSync, constants, openSync, readSync } from "node:fs";
import type { Statements } from "./statements.js";

/** Where the two salts of a WAL stand in its header; SQLite draws them anew each time it restarts the file. */
const SALT_OFFSET = 16;
const SALT_BYTES = 8;

/** A look at the WAL costs a system call, so only one write in this many takes it. */
const LOOK_EVERY = 4;

/** Marks a note inside a page of the file. */
const MAGIC = Buffer.from("agst-wal");
const TOKEN_BYTES = 8;

/** Magic, token, token before, and a check byte for each of them. */
const NOTE_BYTES = MAGIC.length + 2 * TOKEN_BYTES + 2;

/** A link in the chain of notes: one write transaction's mark, and the mark it replaced. */
export interface WalNote {
  /** 16 hex digits, random. */
  readonly token: string;
  readonly previous: string;
}

export function encodeNote({ token, previous }: WalNote): Buffer {
  const [now, before] = [Buffer.from(token, "hex"), Buffer.from(previous, "hex")];
  return Buffer.concat([MAGIC, now, before, Buffer.from([checkByte(now), checkByte(before)])]);
}

/** Finds the note inside a page, or null; a note that is torn is none. */
export function findNote(page: Buffer): WalNote | null {
  const at = page.indexOf(MAGIC);
  if (at < 0 || at + NOTE_BYTES > page.length) return null;
  const now = page.subarray(at + 8, at + 16);
  const before = page.subarray(at + 16, at + 24);
  if (page[at + 24] !== checkByte(now) || page[at + 25] !== checkByte(before)) return null;
  return { token: now.toString("hex"), previous: before.toString("hex") };
}

function checkByte(bytes: Buffer): number {
  let sum = 0x5a;
  for (const byte of bytes) sum = (sum * 31 + byte) & 0xff;
  return sum;
}

/**
 * Keeps the chain of notes in `meta`, by which {@link checkSideFiles} tells
 * whether a WAL belongs to the main file beside it.
 *
 * A connection renews the note with its first write and when it finds that the
 * WAL was restarted since it last looked, in the transaction that it
 * writes anyway.
 */
export class WalNoter {
  #fd: number | null = null;
  #salt: string | null = null;
  #untilLook = 0;
  readonly #found = Buffer.alloc(SALT_BYTES);

  constructor(
    readonly walPath: string,
    readonly statements: Statements,
    readonly randomHex: (bytes: number) => string,
  ) {}

  /** Renews the note if it is time to; call inside a write transaction that changes something. */
  note(): void {
    if (this.#untilLook-- > 0) return;
    const salt = this.#readSalt();
    // Before the first write there was nothing to see: look again at the second.
    this.#untilLook = this.#salt === null ? 0 : LOOK_EVERY - 1;
    if (salt === this.#salt) return;
    const held = this.statements.meta.get("wal_note");
    const before = Buffer.isBuffer(held) ? findNote(held) : null;
    const token = this.randomHex(TOKEN_BYTES);
    const previous = before?.token ?? "0".repeat(2 * TOKEN_BYTES);
    this.statements.setMeta.run(encodeNote({ token, previous }), "wal_note");
    this.#salt = salt;
  }

  /** Forgets what was noted: the transaction was rolled back. */
  forget(): void {
    this.#salt = null;
    this.#untilLook = 0;
  }

  close(): void {
    if (this.#fd !== null) closeSync(this.#fd);
    this.#fd = null;
  }

  #readSalt(): string {
    try {
      // SQLite takes its locks on the main and the shared-memory file, never on
      // this one, so that closing a descriptor of it drops none of them.
      this.#fd ??= openQuietly(this.walPath);
      const read = readSync(this.#fd, this.#found, 0, SALT_BYTES, SALT_OFFSET);
      return this.#found.toString("hex", 0, read);
    } catch {
      return "";
    }
  }
}

/**
 * Opens a file for reading such that reads leave its access time alone: with
 * it they would change the inode, which makes the next sync of the file dearer.
 */
function openQuietly(path: string): number {
  try {
    // Undefined where the system has no such flag.
    return openSync(path, constants.O_RDONLY | (constants.O_NOATIME ?? 0));
  } catch {
    // Linux grants it to the owner of the file only.
    return openSync(path, "r");
  }
}
