/** A commit to be drawn; a parent that is not drawn later leaves its line open at the bottom. */
export interface GraphCommit {
  readonly id: string;
  readonly parents: readonly string[];
}

/** The rows that a commit takes in the graph column, each padded to one width, without line breaks. */
export interface GraphBlock {
  /** Rows above the commit's text; the first is the blank line between two commits if that was asked for. */
  readonly before: readonly string[];
  /** The row with the `*`, for the first line of text. */
  readonly commit: string;
  /** Rows that must follow, with or without text beside them: edges to the parents, lines closing up. */
  readonly after: readonly string[];
  /** The row for lines of text after `after` is used up. */
  readonly padding: string;
}

/** Puts text beside the rows of a commit, as many lines as the longer of the two. */
export function besideGraph(block: GraphBlock, text: readonly string[]): string[] {
  const rows = [block.commit, ...block.after];
  const lines = [...block.before];
  for (let i = 0; i < Math.max(rows.length, text.length); i++) {
    lines.push(`${rows[i] ?? block.padding}${text[i] ?? ""}`);
  }
  return lines;
}

/** Colours a piece of a line. Lines get the numbers 0, 1, 2, ... as they begin; wrap them as needed. */
export type GraphPaint = (line: number, text: string) => string;

/** A line of the graph, on its way down to a commit. */
interface Lane {
  readonly to: string;
  readonly color: number;
}

/** What the last row drawn was: some rows continue the slant of the row above. */
type RowKind = "plain" | "merge" | "closing";

/** No line passes through this cell. */
const FREE = -1;

/** How a commit and its surroundings move from the lanes above it to the lanes below. */
interface Layout {
  readonly commit: GraphCommit;
  /** The lanes above, one for each commit that is awaited; the commit's own, if new, comes last. */
  readonly above: readonly Lane[];
  readonly isNew: boolean;
  /** The commit's lane among `above`. */
  readonly at: number;
  readonly below: readonly Lane[];
  readonly laneOf: ReadonlyMap<string, number>;
  /** For each cell of the row under the commit, the lane of `below` that the edge there leads to. */
  readonly cells: readonly number[];
  readonly width: number;
  /** Whether a merge's first edge leaves to the left (`/`) or straight down (`|`). */
  readonly leansLeft: boolean;
  /** Lanes that a merge adds; -1 when its last edge at once joins the lane beside it. */
  readonly added: number;
  /** Parents that the commit's row shows as dashes, in an octopus merge. */
  readonly dashes: number;
}

/**
 * Draws the commit graph, row for row what `git log --graph` draws (Git 2.39).
 *
 * Commits come in topological order, children first. A lane is two cells
 * wide, and lanes are kept as far left as they can be: a merge spreads the
 * lanes to its right, later rows close them up again, and at most one edge a
 * row runs level (`_`) under the lanes that it crosses.
 */
export class GraphRenderer {
  readonly #paint: GraphPaint | undefined;
  #lanes: readonly Lane[] = [];
  #color = -1;
  #lastRow: RowKind = "plain";
  #last: Pick<Layout, "at" | "added"> = { at: 0, added: 0 };
  /** The cells after the last closing row. */
  #closed: readonly number[] = [];

  constructor(paint?: GraphPaint) {
    this.#paint = paint;
  }

  /**
   * Draws the next commit.
   *
   * @param spaced whether a blank line parts this commit from the one before
   */
  next(commit: GraphCommit, spaced = false): GraphBlock {
    const layout = this.#layOut(commit);
    const before = this.#spreadingRows(layout);
    if (before.length > 0) this.#lastRow = "plain";
    else if (spaced) before.push(this.#blankRow(layout));
    const commitRow = this.#commitRow(layout);
    this.#lastRow = "plain";
    const after: string[] = [];
    if (commit.parents.length > 1) {
      after.push(this.#mergeRow(layout));
      this.#lastRow = "merge";
    }
    after.push(...this.#closingRows(layout));
    this.#last = layout;
    this.#lanes = layout.below;
    return { before, commit: commitRow, after, padding: this.#paddingRow(layout) };
  }

  #layOut(commit: GraphCommit): Layout {
    const known = this.#lanes.findIndex((lane) => lane.to === commit.id);
    const isNew = known < 0;
    const at = isNew ? this.#lanes.length : known;
    const above = isNew ? [...this.#lanes, { to: commit.id, color: this.#color }] : this.#lanes;
    const colors = new Map(this.#lanes.map((lane) => [lane.to, lane.color]));
    const isMerge = commit.parents.length > 1;

    const below: Lane[] = [];
    const laneOf = new Map<string, number>();
    const cells: number[] = [];
    let width = 0;
    let added = 0;
    let leansLeft = false;

    const find = (to: string): number => {
      const lane = laneOf.get(to) ?? below.length;
      if (lane === below.length) {
        below.push({ to, color: colors.get(to) ?? this.#color });
        laneOf.set(to, lane);
      }
      return lane;
    };
    const put = (cell: number, lane: number): void => {
      while (cells.length <= cell) cells.push(FREE);
      cells[cell] = lane;
    };
    const place = (to: string): void => {
      const lane = find(to);
      if (added > 0 && cells[width - 2] === lane) {
        put(width - 2, lane);
        added = -1;
        return;
      }
      put(width, lane);
      width += 2;
    };
    const placeFirstOfMerge = (to: string): void => {
      const lane = find(to);
      const distance = at - lane;
      leansLeft = distance > 0;
      added = commit.parents.length - (leansLeft ? 2 : 1);
      if (leansLeft) put(width - (distance > 1 ? 2 * distance - 3 : 1), lane);
      else {
        put(width, lane);
        width += 2;
      }
    };

    above.forEach((lane, i) => {
      if (i !== at) {
        place(lane.to);
        return;
      }
      commit.parents.forEach((parent, nth) => {
        if (isMerge || isNew) this.#color++;
        if (isMerge && nth === 0) placeFirstOfMerge(parent);
        else place(parent);
      });
      if (commit.parents.length === 0) width += 2;
    });
    const dashes = isMerge ? Math.max(0, commit.parents.length - (leansLeft ? 3 : 2)) : 0;
    return { commit, above, isNew, at, below, laneOf, cells, width, leansLeft, added, dashes };
  }

  /** Makes room for the dashes of an octopus merge, when lanes to its right are in the way. */
  #spreadingRows({ commit, above, at, dashes, width }: Layout): string[] {
    const rows: string[] = [];
    if (commit.parents.length < 3 || at >= above.length - 1) return rows;
    for (let nth = 0; nth < 2 * dashes; nth++) {
      const row = new Row(this.#paint);
      above.forEach((lane, i) => {
        const slants = nth > 0 || (this.#lastRow === "merge" && this.#last.at < i);
        row.edge(lane, i > at && slants ? "\\" : "|");
        row.space(i === at ? nth + 1 : 1);
      });
      rows.push(row.padded(width));
    }
    return rows;
  }

  /** The blank line before a commit, over the lanes that lead into it. */
  #blankRow({ commit, above, isNew, at, width }: Layout): string {
    const row = new Row(this.#paint);
    for (const [i, lane] of above.entries()) {
      if (isNew && i === at) break;
      row.edge(lane, "|");
      row.space(i === at && commit.parents.length > 2 ? 2 * commit.parents.length - 4 : 1);
    }
    this.#lastRow = "plain";
    return row.padded(width);
  }

  #commitRow({ above, at, below, cells, added, dashes, width }: Layout): string {
    const row = new Row(this.#paint);
    above.forEach((lane, i) => {
      if (i === at) {
        row.text("*");
        for (let nth = 0; nth < dashes; nth++) {
          // Where the last edges join a lane on the left, Git finds no edge under the dash either.
          const target = below[cells[2 * (at + 2 + nth)] ?? FREE];
          row.edge(target, "-");
          row.edge(target, nth === dashes - 1 ? "." : "-");
        }
      } else if (i > at && added > 1) {
        row.edge(lane, "\\");
      } else if (i > at && added === 1) {
        const slants = this.#lastRow === "merge" && this.#last.added > 0 && this.#last.at < i;
        row.edge(lane, slants ? "\\" : "|");
      } else {
        const closesUp =
          this.#lastRow === "closing" &&
          this.#closed[2 * i + 1] === i &&
          (cells[2 * i] ?? FREE) < i;
        row.edge(lane, closesUp ? "/" : "|");
      }
      row.space(1);
    });
    return row.padded(width);
  }

  /** The edges from a merge to its parents: `|\`, `|/|`, and to the far left `|_|/`. */
  #mergeRow({ commit, above, at, below, laneOf, leansLeft, added, width }: Layout): string {
    const row = new Row(this.#paint);
    let firstParentLane: Lane | undefined;
    above.forEach((lane, i) => {
      if (i === at) {
        commit.parents.forEach((parent, nth) => {
          const char = "/|\\"[Math.min(2, nth + (leansLeft ? 0 : 1))]!;
          row.edge(below[laneOf.get(parent)!]!, char);
          if (char === "\\" && (added > 0 || nth < commit.parents.length - 1)) row.space(1);
        });
        if (added === 0) row.space(1);
      } else if (i > at) {
        row.edge(lane, added > 0 ? "\\" : "|");
        row.space(1);
      } else {
        row.edge(lane, "|");
        // Where a merge leans left, its first edge takes the cell before it.
        if (!leansLeft || i !== at - 1) {
          if (firstParentLane !== undefined) row.edge(firstParentLane, "_");
          else row.space(1);
        }
      }
      if (lane.to === commit.parents[0]) firstParentLane = lane;
    });
    return row.padded(width);
  }

  /** Moves the lanes to their places, a cell or two a row. */
  #closingRows({ below, cells, width }: Layout): string[] {
    const rows: string[] = [];
    let now = cells;
    while (!isClosed(now)) {
      const step = closeUp(now);
      const row = new Row(this.#paint);
      for (const { char, lane } of step.row) {
        if (lane === FREE) row.space(1);
        else row.edge(below[lane]!, char);
      }
      rows.push(row.padded(width));
      now = step.cells;
      this.#closed = now;
      this.#lastRow = "closing";
    }
    return rows;
  }

  #paddingRow({ below, width }: Layout): string {
    const row = new Row(this.#paint);
    for (const lane of below) {
      row.edge(lane, "|");
      row.space(1);
    }
    return row.padded(width);
  }
}

/** Whether each edge is at its place, or one cell to the right, from where a `/` reaches it on the next row. */
function isClosed(cells: readonly number[]): boolean {
  return cells.every((lane, x) => lane === FREE || lane === x >> 1);
}

interface ClosingStep {
  readonly row: readonly { readonly char: string; readonly lane: number }[];
  /** Where the edges are after this row. */
  readonly cells: readonly number[];
}

/**
 * Moves every edge that is not at its place to the left: by one cell when the
 * cell is free, by two across another edge, not at all when it joins its own lane.
 *
 * The first edge that moves may run level from its lane up to where it is now.
 */
function closeUp(cells: readonly number[]): ClosingStep {
  const reached: number[] = new Array(cells.length).fill(FREE);
  let level: { readonly lane: number; readonly head: number } | undefined;
  cells.forEach((lane, x) => {
    if (lane === FREE) return;
    if (x === 2 * lane) {
      reached[x] = lane;
      return;
    }
    const left = reached[x - 1];
    if (left === lane) return;
    const head = left === FREE ? x - 1 : x - 2;
    reached[head] = lane;
    if (level === undefined) {
      level = { lane, head };
      for (let y = 2 * lane + 3; y < x - 2; y += 2) reached[y] = lane;
    }
  });

  const drawn = reached.at(-1) === FREE ? reached.slice(0, -1) : reached;
  const next = [...drawn];
  let isLevelDrawn = false;
  const row = drawn.map((lane, x) => {
    if (lane === FREE) return { char: " ", lane };
    if (x === 2 * lane) return { char: "|", lane };
    if (lane === level?.lane && x !== level.head) {
      // Only the leftmost piece goes on into the next row; the rest of the edge ends here.
      if (x !== 2 * lane + 3) next[x] = FREE;
      isLevelDrawn = true;
      return { char: "_", lane };
    }
    if (isLevelDrawn && level !== undefined && x <= level.head) next[x] = FREE;
    return { char: "/", lane };
  });
  return { row, cells: next };
}

/** A row in the making; knows its width on the screen, whatever the colours add to its text. */
class Row {
  readonly #paint: GraphPaint | undefined;
  #text = "";
  #width = 0;

  constructor(paint: GraphPaint | undefined) {
    this.#paint = paint;
  }

  text(plain: string): void {
    this.#text += plain;
    this.#width += plain.length;
  }

  /** A piece of a line; without a lane it is not coloured. */
  edge(lane: Lane | undefined, char: string): void {
    const isPainted = this.#paint !== undefined && lane !== undefined;
    this.#text += isPainted ? this.#paint(lane.color, char) : char;
    this.#width += 1;
  }

  space(count: number): void {
    this.text(" ".repeat(count));
  }

  padded(width: number): string {
    return this.#text + " ".repeat(Math.max(0, width - this.#width));
  }
}
