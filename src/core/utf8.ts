/** The order of the bytes of UTF-8, which databases sort by; that of UTF-16 differs above U+FFFF. */
export function compareUtf8(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
