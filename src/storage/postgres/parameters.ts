/** The value of a parameter: NULL, text, or the bytes of its binary format, in one piece or in several. */
export type Parameter = null | string | Uint8Array | readonly Uint8Array[];

/** Numbers of types in PostgreSQL's catalogue; of those that are built in they never change. */
const TYPE = { int8: 20, int4: 23, text: 25, uuid: 2950 } as const;

/** Number of dimensions, whether there are NULLs, type of elements; then length and first index. */
const HEADER_BYTES = 20;
const EMPTY_HEADER_BYTES = 12;

/** An `int[]`. */
export function int4s(values: readonly number[]): Buffer {
  return array(
    TYPE.int4,
    values,
    () => 4,
    (bytes, at, value) => bytes.writeInt32BE(value, at),
  );
}

/** A `bigint[]` of whole numbers that JavaScript holds exactly. */
export function int8s(values: readonly (number | null)[]): Buffer {
  return array(
    TYPE.int8,
    values,
    () => 8,
    (bytes, at, value) => {
      bytes.writeInt32BE(Math.floor(value / 2 ** 32), at);
      bytes.writeInt32BE(value | 0, at + 4);
    },
  );
}

/** A `text[]`. */
export function texts(values: readonly (string | null)[]): Buffer {
  return array(TYPE.text, values, Buffer.byteLength, (bytes, at, value) => bytes.write(value, at));
}

/** A `uuid[]` of uuids written with hyphens. */
export function uuids(values: readonly string[]): Buffer {
  return array(
    TYPE.uuid,
    values,
    () => 16,
    (bytes, at, value) => bytes.write(value.replaceAll("-", ""), at, "hex"),
  );
}

/** An array of one dimension in the format of the server's `array_recv`. */
function array<T>(
  type: number,
  values: readonly (T | null)[],
  sizeOf: (value: T) => number,
  put: (bytes: Buffer, at: number, value: T) => void,
): Buffer {
  const sizes = values.map((value) => (value === null ? -1 : sizeOf(value)));
  const total = sizes.reduce((sum, size) => sum + 4 + Math.max(size, 0), HEADER_BYTES);
  const bytes = Buffer.allocUnsafe(total);
  bytes.writeInt32BE(values.length === 0 ? 0 : 1, 0);
  bytes.writeInt32BE(sizes.includes(-1) ? 1 : 0, 4);
  bytes.writeInt32BE(type, 8);
  if (values.length === 0) return bytes.subarray(0, EMPTY_HEADER_BYTES);
  bytes.writeInt32BE(values.length, 12);
  bytes.writeInt32BE(1, 16);
  let at = HEADER_BYTES;
  values.forEach((value, i) => {
    const size = sizes[i] as number;
    bytes.writeInt32BE(size, at);
    at += 4;
    if (value === null) return;
    put(bytes, at, value);
    at += size;
  });
  return bytes;
}

/** "B", "E" and "S" of the protocol between client and server. */
const BIND = 0x42;
/** Execute the unnamed portal to its end, then Sync. */
const EXECUTE_AND_SYNC = Buffer.from([0x45, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0x53, 0, 0, 0, 4]);

/**
 * The messages that run a statement, parsed under a name before, with values: Bind, Execute, Sync. Its
 * answer comes as text.
 */
export function bindMessages(statement: string, parameters: readonly Parameter[]): Buffer {
  const count = parameters.length;
  const sizes = parameters.map(sizeOf);
  // Kind and length; two names with their ends; formats, values and the format of answers, counted.
  let total = 5 + 1 + Buffer.byteLength(statement) + 1 + 2 + 2 * count + 2 + 4;
  for (const size of sizes) total += 4 + Math.max(size, 0);
  const bytes = Buffer.allocUnsafe(total + EXECUTE_AND_SYNC.length);
  bytes[0] = BIND;
  bytes.writeInt32BE(total - 1, 1);
  bytes[5] = 0;
  let at = 6 + bytes.write(statement, 6);
  bytes[at++] = 0;
  at = bytes.writeInt16BE(count, at);
  for (const value of parameters) {
    at = bytes.writeInt16BE(value === null || typeof value === "string" ? 0 : 1, at);
  }
  at = bytes.writeInt16BE(count, at);
  parameters.forEach((value, i) => {
    at = bytes.writeInt32BE(sizes[i] as number, at);
    if (value === null) return;
    if (typeof value === "string") at += bytes.write(value, at);
    else {
      for (const part of isWhole(value) ? [value] : value) {
        bytes.set(part, at);
        at += part.length;
      }
    }
  });
  at = bytes.writeInt16BE(1, at);
  at = bytes.writeInt16BE(0, at);
  bytes.set(EXECUTE_AND_SYNC, at);
  return bytes;
}

function isWhole(value: Uint8Array | readonly Uint8Array[]): value is Uint8Array {
  return value instanceof Uint8Array;
}

/** Bytes; -1 of NULL. */
function sizeOf(value: Parameter): number {
  if (value === null) return -1;
  if (typeof value === "string") return Buffer.byteLength(value);
  if (isWhole(value)) return value.length;
  let size = 0;
  for (const part of value) size += part.length;
  return size;
}
