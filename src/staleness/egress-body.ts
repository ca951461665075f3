import { promisify } from "node:util";
import { brotliDecompress, gunzip, inflate } from "node:zlib";
import type { Dispatcher } from "undici";

type Body = Dispatcher.ResponseData["body"];

const DECODERS = {
  gzip: promisify(gunzip),
  "x-gzip": promisify(gunzip),
  deflate: promisify(inflate),
  br: promisify(brotliDecompress),
} as const;

/** How much of a body that nobody reads is taken in, in bytes, to keep the connection; more ends it. */
const DISCARDED_MAX_BYTES = 64 * 1024;

/** How long such a body may take, in milliseconds. */
const DISCARDING_MAX_MS = 1000;

/** An answer of which nothing can be made. The message says why, in words that hold nothing of the answer. */
export class EgressUnusable extends Error {
  override readonly name = "EgressUnusable";
}

/** Reads a body whole; it may be decoded, though nothing but `identity` was asked for. */
export async function readBody(body: Body, headers: Headers, maxBytes: number): Promise<Buffer> {
  const tooLarge = () => new EgressUnusable(`the answer is larger than ${maxBytes} bytes`);
  const encoding = (headers.get("content-encoding") ?? "identity").trim().toLowerCase();
  const decode = Object.hasOwn(DECODERS, encoding)
    ? DECODERS[encoding as keyof typeof DECODERS]
    : null;
  if (decode === null && encoding !== "identity") {
    discard(body);
    throw new EgressUnusable("the answer has an encoding that is not known");
  }
  const parts: Buffer[] = [];
  let size = 0;
  // Leaving the loop ends the connection.
  for await (const part of body as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > maxBytes) throw tooLarge();
    parts.push(part);
  }
  const bytes = Buffer.concat(parts);
  if (decode === null) return bytes;
  try {
    return await decode(bytes, { maxOutputLength: maxBytes });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ERR_BUFFER_TOO_LARGE") throw tooLarge();
    throw new EgressUnusable("the answer is not encoded as it says");
  }
}

/** Lets go of a body without looking at it. */
export function discard(body: Body): void {
  // It may fail by then; nobody needs it any more.
  body.on("error", () => {});
  const signal = AbortSignal.timeout(DISCARDING_MAX_MS);
  void body.dump({ limit: DISCARDED_MAX_BYTES, signal }).catch(() => {});
}
