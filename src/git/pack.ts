import { type FileHandle, open } from "node:fs/promises";
import { promisify } from "node:util";
import { crc32, deflate, deflateSync } from "node:zlib";
import type { ObjectId } from "../core/ids.js";
import { createSha256 } from "../objects/hash.js";

/** An object as Git's pack holds it. */
export interface PackObject {
  readonly id: ObjectId;
  readonly type: "commit" | "tree" | "blob";
  readonly body: Uint8Array;
}

/** Where an object is in the pack, and the CRC-32 of its bytes there. */
export interface PackEntry {
  readonly id: ObjectId;
  readonly offset: number;
  readonly crc: number;
}

const TYPE_CODES = { commit: 1, tree: 2, blob: 3 } as const;
const PACK_VERSION = 2;
const HEADER_BYTES = 12;
/** Below this, deflating here is faster than handing the body to another thread. */
const DEFLATE_INLINE_MAX_BYTES = 16 * 1024;
const WRITE_BUFFER_BYTES = 1024 * 1024;

const deflateElsewhere = promisify(deflate);

/**
 * Writes a pack, object by object, without holding their bodies.
 *
 * Objects are deflated whole, never as deltas. The number of objects stands at
 * the front of a pack and is known only at the end, so {@link finish} fills it
 * in and reads the file once more for its checksum, as `git fast-import` does.
 *
 * Format: gitformat-pack(5), version 2, with SHA-256 checksums.
 */
export class PackWriter {
  readonly entries: PackEntry[] = [];
  readonly #file: FileHandle;
  readonly #seen = new Set<ObjectId>();
  #buffered: Uint8Array[] = [Buffer.alloc(HEADER_BYTES)];
  #bufferedBytes = HEADER_BYTES;
  #offset = HEADER_BYTES;

  private constructor(file: FileHandle) {
    this.#file = file;
  }

  /** Creates the file, which must not exist, with this mode. */
  static async create(path: string, mode: number): Promise<PackWriter> {
    return new PackWriter(await open(path, "wx+", mode));
  }

  /** Writes an object; one that is in the pack already is passed over. */
  async add(object: PackObject): Promise<void> {
    if (this.#seen.has(object.id)) return;
    this.#seen.add(object.id);
    const header = entryHeader(object.type, object.body.length);
    const small = object.body.length <= DEFLATE_INLINE_MAX_BYTES;
    const deflated = small ? deflateSync(object.body) : await deflateElsewhere(object.body);
    const crc = crc32(deflated, crc32(header));
    this.entries.push({ id: object.id, offset: this.#offset, crc });
    this.#offset += header.length + deflated.length;
    await this.#append(header, deflated);
  }

  has(id: ObjectId): boolean {
    return this.#seen.has(id);
  }

  /** Completes the pack, brings it to the disk, and answers its checksum. */
  async finish(): Promise<Buffer> {
    await this.#flush();
    const header = Buffer.from("PACK........");
    header.writeUInt32BE(PACK_VERSION, 4);
    header.writeUInt32BE(this.entries.length, 8);
    await this.#file.write(header, 0, HEADER_BYTES, 0);

    const hash = createSha256();
    const chunk = Buffer.allocUnsafe(WRITE_BUFFER_BYTES);
    for (let at = 0; at < this.#offset; ) {
      const { bytesRead } = await this.#file.read(chunk, 0, chunk.length, at);
      if (bytesRead === 0) throw new Error("the pack became shorter while it was written");
      hash.update(chunk.subarray(0, bytesRead));
      at += bytesRead;
    }
    const checksum = Buffer.from(hash.digest());
    await this.#file.write(checksum, 0, checksum.length, this.#offset);
    await this.#file.sync();
    return checksum;
  }

  /** Lets go of the file, finished or not. */
  async close(): Promise<void> {
    await this.#file.close();
  }

  async #append(...parts: Uint8Array[]): Promise<void> {
    for (const part of parts) {
      this.#buffered.push(part);
      this.#bufferedBytes += part.length;
    }
    if (this.#bufferedBytes >= WRITE_BUFFER_BYTES) await this.#flush();
  }

  async #flush(): Promise<void> {
    const bytes = Buffer.concat(this.#buffered);
    this.#buffered = [];
    this.#bufferedBytes = 0;
    for (let at = 0; at < bytes.length; ) {
      at += (await this.#file.write(bytes, at)).bytesWritten;
    }
  }
}

/** Type and size of an entry: 4 bits of the size beside the type, then 7 a byte, lowest first. */
function entryHeader(type: PackObject["type"], size: number): Buffer {
  const bytes = [(TYPE_CODES[type] << 4) | (size % 16)];
  for (let rest = Math.floor(size / 16); rest > 0; rest = Math.floor(rest / 128)) {
    bytes[bytes.length - 1]! |= 0x80;
    bytes.push(rest % 128);
  }
  return Buffer.from(bytes);
}
