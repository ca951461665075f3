import { OBJECT_ID_BYTES } from "../core/ids.js";
import { createSha256 } from "../objects/hash.js";
import type { PackEntry } from "./pack.js";

const MAGIC = Buffer.from([0xff, 0x74, 0x4f, 0x63]);
const VERSION = 2;
/** Offsets from here on stand in a table of their own, eight bytes each. */
const LARGE_OFFSET = 0x8000_0000;

/**
 * Makes the bytes of a pack's index: ids in order, with CRC and offset.
 *
 * Format: gitformat-pack(5), version 2, with SHA-256 ids and checksums.
 */
export function packIndex(entries: readonly PackEntry[], packChecksum: Uint8Array): Buffer {
  const sorted = [...entries].sort((a, b) => (a.id < b.id ? -1 : 1));
  const count = sorted.length;
  const large = sorted.filter((entry) => entry.offset >= LARGE_OFFSET);

  const fanout = Buffer.alloc(256 * 4);
  const ids = Buffer.alloc(count * OBJECT_ID_BYTES);
  const crcs = Buffer.alloc(count * 4);
  const offsets = Buffer.alloc(count * 4);
  const largeOffsets = Buffer.alloc(large.length * 8);

  let largeSoFar = 0;
  sorted.forEach(({ id, offset, crc }, i) => {
    ids.write(id, i * OBJECT_ID_BYTES, "hex");
    crcs.writeUInt32BE(crc, i * 4);
    if (offset < LARGE_OFFSET) {
      offsets.writeUInt32BE(offset, i * 4);
    } else {
      offsets.writeUInt32BE(LARGE_OFFSET + largeSoFar, i * 4);
      largeOffsets.writeBigUInt64BE(BigInt(offset), largeSoFar * 8);
      largeSoFar++;
    }
  });
  for (let first = 0, upTo = 0; first < 256; first++) {
    while (upTo < count && ids[upTo * OBJECT_ID_BYTES]! <= first) upTo++;
    fanout.writeUInt32BE(upTo, first * 4);
  }

  const version = Buffer.alloc(4);
  version.writeUInt32BE(VERSION);
  const body = Buffer.concat([
    ...[MAGIC, version, fanout, ids, crcs, offsets, largeOffsets],
    packChecksum,
  ]);
  const hash = createSha256();
  hash.update(body);
  return Buffer.concat([body, hash.digest()]);
}
