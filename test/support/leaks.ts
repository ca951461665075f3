import { inspect } from "node:util";
import { brotliDecompressSync, gunzipSync, inflateSync } from "node:zlib";
import { expect } from "vitest";
import { randomHex } from "../../src/testing/index.js";

/** A text of letters and digits, which no escaping changes, and that stands nowhere by chance. */
export function newMarker(): string {
  return `zq${randomHex(10)}W`;
}

/** How bytes hold a text: as it is, in UTF-16, in hex, in base64 at any place of a longer one. */
function formsOf(marker: string): readonly string[] {
  const utf16 = Buffer.from(marker, "utf16le");
  const plain = Buffer.from(marker);
  const swapped = Buffer.from(utf16).swap16();
  const base64 = [plain, utf16].flatMap((bytes) =>
    [0, 1, 2].map((before) => {
      const text = Buffer.concat([Buffer.alloc(before), bytes]).toString("base64");
      // What shares a character with what stands before or behind is left out.
      return text.slice(before === 0 ? 0 : before + 1, -4);
    }),
  );
  return [
    marker,
    ...[utf16, swapped].map((bytes) => bytes.toString("latin1")),
    ...[plain, utf16].flatMap((bytes) => [
      bytes.toString("hex"),
      bytes.toString("hex").toUpperCase(),
    ]),
    ...base64,
    ...base64.map((text) => text.replaceAll("+", "-").replaceAll("/", "_")),
    encodeURIComponent([...plain].map((byte) => `%${byte.toString(16)}`).join("")),
    [...plain].map((byte) => `%${byte.toString(16)}`).join(""),
    [...plain].join(","),
  ];
}

/** The bytes, and what they are inflated where they are compressed. */
function inflated(bytes: Buffer): readonly Buffer[] {
  const all = [bytes];
  for (const inflate of [gunzipSync, inflateSync, brotliDecompressSync]) {
    try {
      all.push(inflate(bytes));
    } catch {
      // Not compressed so.
    }
  }
  return all;
}

/** Expects that what was told holds none of the markers in any form. */
export function expectNone(
  told: string | Uint8Array,
  markers: readonly string[],
  what: string,
): void {
  for (const bytes of inflated(Buffer.from(told as Uint8Array))) {
    const text = bytes.toString("latin1");
    for (const marker of markers) {
      for (const form of formsOf(marker)) {
        const at = text.indexOf(form);
        if (at < 0) continue;
        expect.fail(
          `${what} tells ${JSON.stringify(form)}: ...${text.slice(Math.max(0, at - 200), at + 100)}`,
        );
      }
    }
  }
}

/** All that can be seen of an error: as it is printed, with what is hidden, as JSON, and of each that it was caused by. */
export function everythingOf(error: unknown): string {
  const parts: string[] = [
    inspect(error, {
      depth: Infinity,
      showHidden: true,
      maxStringLength: null,
      maxArrayLength: null,
    }),
  ];
  const seen = new Set<unknown>();
  const visit = (each: unknown): void => {
    if (seen.has(each)) return;
    seen.add(each);
    parts.push(String(each), inspect(each, { depth: Infinity }));
    if (!(each instanceof Error)) return;
    parts.push(each.message, each.stack ?? "", JSON.stringify(each));
    for (const name of Object.getOwnPropertyNames(each)) {
      parts.push(
        `${name}: ${inspect((each as unknown as Record<string, unknown>)[name], { depth: Infinity })}`,
      );
    }
    visit(each.cause);
    if (each instanceof AggregateError) each.errors.forEach(visit);
  };
  visit(error);
  return parts.join("\n");
}
