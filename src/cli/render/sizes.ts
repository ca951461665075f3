/** A number of bytes in the unit that reads best: `3.2 MB` (decimal units). */
export function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  let value = bytes;
  for (const unit of ["kB", "MB", "GB", "TB"]) {
    value /= 1000;
    if (value < 999.5) return `${value < 9.95 ? value.toFixed(1) : Math.round(value)} ${unit}`;
  }
  return `${Math.round(value)} PB`;
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
