import { AgstateError } from "../core/errors.js";

/** The most that may be held back, in bytes. */
const RESERVE_MAX_BYTES = 1024 * 1024 * 1024;

/**
 * Memory that is held so that it can be given back when memory is short: for as long as writing takes, the process
 * has that much more before the kernel kills it.
 *
 * It is given back at once, without a garbage collection: shrinking a resizable buffer returns its pages to the system.
 */
export class Reserve {
  private buffer: Resizable | undefined;

  /** @throws AgstateError `INVALID_ARGUMENT` */
  constructor(private readonly bytes: number) {
    checkReserve(bytes);
  }

  /** What is not held just now, and will be again. */
  get releasedBytes(): number {
    return this.buffer === undefined ? this.bytes : 0;
  }

  /** Takes the memory, page by page, as the system gives none before it is written to; nothing where it is not to be had. */
  take(): void {
    if (this.bytes === 0 || this.buffer !== undefined) return;
    try {
      const buffer = new ResizableBuffer(this.bytes, { maxByteLength: this.bytes });
      const bytes = new Uint8Array(buffer);
      for (let i = 0; i < bytes.length; i += PAGE_BYTES) bytes[i] = 1;
      this.buffer = buffer;
    } catch {
      // Without it the process is where it would be with none.
    }
  }

  /** Gives it back; answers how many bytes that were. */
  release(): number {
    const { buffer } = this;
    if (buffer === undefined) return 0;
    this.buffer = undefined;
    const { byteLength } = buffer;
    buffer.resize(0);
    return byteLength;
  }
}

const PAGE_BYTES = 4096;

/** Resizable buffers are older than the language's types of them. */
type Resizable = ArrayBuffer & { resize(length: number): void };
const ResizableBuffer = ArrayBuffer as unknown as new (
  length: number,
  options: { readonly maxByteLength: number },
) => Resizable;

/** @throws AgstateError `INVALID_ARGUMENT` */
export function checkReserve(bytes: number): number {
  if (Number.isSafeInteger(bytes) && bytes >= 0 && bytes <= RESERVE_MAX_BYTES) return bytes;
  throw new AgstateError(
    "INVALID_ARGUMENT",
    `reserveBytes is ${bytes}; it is a whole number of bytes, from 0 to ${RESERVE_MAX_BYTES}`,
    { reserveBytes: bytes, max: RESERVE_MAX_BYTES },
  );
}
