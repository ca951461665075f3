import { closeSync, fstatSync, openSync, readSync, statSync } from "node:fs";
import { basename } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { AgstateError } from "../../core/errors.js";
import { findNote, type WalNote } from "./wal-note.js";

/** `meta` is the first table that the first migration makes: its root, with the note, is page 2. */
const NOTE_PAGE = 2;

const WAL_HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;

/** How often the mismatch must be seen, with a pause between, before it is believed. */
const LOOKS = 4;
const PAUSE_MS = 25;

/** Main files open in this process, by device and inode. */
const openFiles = new Map<string, number>();

/**
 * Remembers that this process has the store's main file open; call the answer on close.
 *
 * POSIX drops all locks that a process holds on a file when it closes any
 * descriptor of it, so {@link checkSideFiles} must not touch a main file that
 * SQLite has open here.
 */
export function holdMainFile(mainPath: string): () => void {
  const { dev, ino } = statSync(mainPath);
  const key = `${dev}:${ino}`;
  openFiles.set(key, (openFiles.get(key) ?? 0) + 1);
  return () => {
    const left = (openFiles.get(key) ?? 1) - 1;
    if (left === 0) openFiles.delete(key);
    else openFiles.set(key, left);
  };
}

/**
 * Refuses a main file and a write-ahead log that do not belong together, before
 * SQLite opens them and mixes the log's pages into the wrong file: what happens
 * when only the main file is restored from a backup.
 *
 * The main file's note must be one that the log holds, or the one that the
 * log's first note says it replaced; a checkpoint can only ever have left one
 * of these. It never refuses what it cannot judge: a log without a note (one
 * whose process died right after its first transaction), a torn page, files
 * that change while it looks.
 *
 * @throws AgstateError `STORE_MISMATCH`
 */
export async function checkSideFiles(mainPath: string): Promise<void> {
  for (let look = 0; look < LOOKS; look++) {
    if (look > 0) await sleep(PAUSE_MS);
    if (belongTogether(mainPath, look > 0)) return;
  }
  const [main, wal] = [basename(mainPath), `${basename(mainPath)}-wal`];
  throw new AgstateError(
    "STORE_MISMATCH",
    `${mainPath}: ${wal} was not written on top of this ${main}; somebody restored one without the other. ` +
      `Restore ${main}, ${wal} and ${main}-shm from one backup; or, if ${main} alone is what you want, move ${wal} and ${main}-shm away`,
    { main: mainPath, wal: `${mainPath}-wal` },
  );
}

/** @param careful whether to trust only frames that SQLite would: committed, with good checksums */
function belongTogether(mainPath: string, careful: boolean): boolean {
  let main: number | null = null;
  let wal: number | null = null;
  try {
    const { dev, ino } = statSync(mainPath);
    if (openFiles.has(`${dev}:${ino}`)) return true;
    wal = openSync(`${mainPath}-wal`, "r");
    const before = readHeader(wal);
    if (before === null) return true;
    main = openSync(mainPath, "r");
    const note = readMainNote(main);
    if (note === null || agrees(note, wal, before, careful)) return true;
    // Only a look at files that stood still counts.
    const after = readHeader(wal);
    return after?.salt.equals(before.salt) !== true || readMainNote(main)?.token !== note.token;
  } catch {
    // Not there, or not readable: SQLite will say so.
    return true;
  } finally {
    if (main !== null) closeSync(main);
    if (wal !== null) closeSync(wal);
  }
}

interface WalHeader {
  readonly pageSize: number;
  readonly salt: Buffer;
  readonly bigEndian: boolean;
  /** The running checksum after the header. */
  readonly checksum: readonly [number, number];
}

function readHeader(wal: number): WalHeader | null {
  const header = readAt(wal, 0, WAL_HEADER_BYTES);
  if (header === null || header.readUInt32BE(0) >>> 1 !== 0x377f0682 >>> 1) return null;
  return {
    pageSize: header.readUInt32BE(8),
    salt: header.subarray(16, 24),
    bigEndian: (header[3]! & 1) === 1,
    checksum: [header.readUInt32BE(24), header.readUInt32BE(28)],
  };
}

function readMainNote(main: number): WalNote | null {
  const header = readAt(main, 0, 100);
  if (header === null) return null;
  const size = header.readUInt16BE(16);
  const pageSize = size === 1 ? 65536 : size;
  const page = readAt(main, (NOTE_PAGE - 1) * pageSize, pageSize);
  return page && findNote(page);
}

/**
 * Whether the main file's note fits the log, or the log has none to hold
 * against it. Frames of an earlier round of the log have other salts. A log
 * that holds every page fits any file: so does one into which SQLite's own
 * backup or VACUUM wrote, which break the chain of notes rightfully.
 */
function agrees(main: WalNote, wal: number, header: WalHeader, careful: boolean): boolean {
  const frameBytes = FRAME_HEADER_BYTES + header.pageSize;
  const end = fstatSync(wal).size;
  let sum = header.checksum;
  let fits = true;
  let fitsCommitted = true;
  let first = true;
  const pages = new Set<number>();
  for (let at = WAL_HEADER_BYTES; at + frameBytes <= end; at += frameBytes) {
    const frame = readAt(wal, at, careful ? frameBytes : FRAME_HEADER_BYTES);
    if (frame === null || !frame.subarray(8, 16).equals(header.salt)) break;
    if (careful) {
      sum = checksum(frame.subarray(0, 8), header.bigEndian, sum);
      sum = checksum(frame.subarray(FRAME_HEADER_BYTES), header.bigEndian, sum);
      if (sum[0] !== frame.readUInt32BE(16) || sum[1] !== frame.readUInt32BE(20)) break;
    }
    const page = frame.readUInt32BE(0);
    pages.add(page);
    if (page === NOTE_PAGE) {
      const content = readAt(wal, at + FRAME_HEADER_BYTES, header.pageSize);
      const note = content && findNote(content);
      if (note !== null) {
        if (note.token === main.token) return true;
        if (first && note.previous === main.token) return true;
        first = false;
        fits = false;
      }
    }
    const pageCount = frame.readUInt32BE(4);
    if (pageCount !== 0) fitsCommitted = fits || pages.size >= pagesOf(pageCount, header.pageSize);
  }
  return careful ? fitsCommitted : fits;
}

/** How many pages of a file are ever written: one that reaches past 1 GiB has a page for locks. */
function pagesOf(pageCount: number, pageSize: number): number {
  return pageCount * pageSize > 2 ** 30 ? pageCount - 1 : pageCount;
}

/** The running checksum of SQLite's WAL format, over a length that is a multiple of 8. */
function checksum(
  bytes: Buffer,
  bigEndian: boolean,
  [start0, start1]: readonly [number, number],
): [number, number] {
  let s0 = start0;
  let s1 = start1;
  for (let at = 0; at + 8 <= bytes.length; at += 8) {
    s0 = (s0 + (bigEndian ? bytes.readUInt32BE(at) : bytes.readUInt32LE(at)) + s1) >>> 0;
    s1 = (s1 + (bigEndian ? bytes.readUInt32BE(at + 4) : bytes.readUInt32LE(at + 4)) + s0) >>> 0;
  }
  return [s0, s1];
}

/** Reads exactly `length` bytes at an offset, or null where the file ends before. */
function readAt(fd: number, offset: number, length: number): Buffer | null {
  const buffer = Buffer.alloc(length);
  return readSync(fd, buffer, 0, length, offset) === length ? buffer : null;
}
