/** How many single edits make one name of the other at most, for it to be offered: a third of the name, and 2 at most. */
function mostEdits(name: string): number {
  return Math.min(2, Math.floor(name.length / 3) + 1);
}

/** The known names that somebody may have meant, nearest first; for a message only, never to pick one. */
export function nearNames(given: string, known: readonly string[]): string[] {
  // Padding and case aside: a name that differs in these alone is the nearest there is.
  const meant = given.trim().toLowerCase().slice(0, 100);
  if (meant === "") return [];
  return known
    .map((name) => ({ name, edits: editsBetween(meant, name) }))
    .filter(({ name, edits }) => edits <= mostEdits(name))
    .sort((a, b) => a.edits - b.edits)
    .slice(0, 3)
    .map(({ name }) => name);
}

/**
 * The least number of insertions, deletions, replacements and swaps of neighbours that make one text the other.
 *
 * The optimal string alignment distance: Damerau's edits over Wagner and Fischer's table (1974).
 */
function editsBetween(a: string, b: string): number {
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let edits = Math.min(
        (last[j] as number) + 1,
        (row[j - 1] as number) + 1,
        (last[j - 1] as number) + (same ? 0 : 1),
      );
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        edits = Math.min(edits, (before[j - 2] as number) + 1);
      }
      row.push(edits);
    }
    before = last;
    last = row;
  }
  return last[b.length] as number;
}
