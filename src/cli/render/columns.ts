import stringWidth from "string-width";

/** Rows as lines with aligned columns, two spaces apart. Cells may hold colours and wide characters. */
export function columns(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, i) => {
      widths[i] = Math.max(widths[i] ?? 0, stringWidth(cell));
    });
  }
  return rows.map((row) =>
    row
      .map((cell, i) =>
        i === row.length - 1 ? cell : cell + " ".repeat((widths[i] as number) - stringWidth(cell)),
      )
      .join("  ")
      .trimEnd(),
  );
}
