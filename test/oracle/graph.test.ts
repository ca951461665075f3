import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  besideGraph,
  type GraphCommit,
  type GraphPaint,
  GraphRenderer,
} from "../../src/cli/render/graph.js";
import { DUPLICATE_PARENTS, dagArbitrary, writeDag } from "../support/dag.js";
import { git, gitLines, temporaryFolder } from "../support/git.js";
import { usually } from "../support/runs.js";

const folder = temporaryFolder();
const RUNS = usually(15, 2000);

/** Commits in the order in which git shows them. */
function shownCommits(directory: string, args: readonly string[]): GraphCommit[] {
  return gitLines(directory, ["log", "--topo-order", "--format=%H %P", ...args]).map((line) => {
    const [id, ...parents] = line.trimEnd().split(" ");
    return { id: id!, parents };
  });
}

/** The whole drawing, with the same lines of text beside each commit as git is asked for. */
function draw(
  commits: readonly GraphCommit[],
  textOf: (commit: GraphCommit) => string[],
  options: { spaced?: boolean; paint?: GraphPaint } = {},
): string {
  const renderer = new GraphRenderer(options.paint);
  const lines = commits.flatMap((commit, i) =>
    besideGraph(renderer.next(commit, options.spaced === true && i > 0), textOf(commit)),
  );
  return lines.map((line) => `${line}\n`).join("");
}

const COLORS = ["31", "32", "33", "34", "35"];
const paintAsGit: GraphPaint = (line, text) =>
  `\u001b[${COLORS[line % COLORS.length]}m${text}\u001b[m`;
const GIT_COLORS = ["-c", "log.graphColors=red,green,yellow,blue,magenta"];

function expectAsGit(directory: string): void {
  const all = shownCommits(directory, ["--all"]);
  const log = (args: string[]) => git(directory, ["log", "--graph", "--all", ...args]);

  expect(draw(all, (c) => [c.id])).toBe(log(["--format=%H"]));
  expect(draw(all, (c) => [c.id, "x"])).toBe(log(["--format=%H%nx"]));
  expect(draw(all.slice(0, 10), (c) => [c.id])).toBe(log(["-n", "10", "--format=%H"]));

  // The short format parts commits by a blank line, which carries the graph too.
  const short = (c: GraphCommit) => [
    `commit ${c.id}`,
    ...(c.parents.length > 1 ? [`Merge: ${c.parents.join(" ")}`] : []),
    "Author: a <a@b>",
    "",
    "    m",
  ];
  expect(draw(all, short, { spaced: true })).toBe(log(["--format=short", "--no-abbrev"]));

  const colored = git(directory, [
    ...GIT_COLORS,
    ...["log", "--graph", "--all", "--color=always", "--format=%H"],
  ]);
  expect(draw(all, (c) => [c.id], { paint: paintAsGit })).toBe(colored);
}

describe("graph column of random histories, against git log --graph", () => {
  it("is the same byte for byte in merges of up to three parents", async () => {
    const dags = dagArbitrary({ maxCommits: 40, maxParents: 3 });
    const property = fc.property(dags, (dag) => {
      expectAsGit(writeDag(folder, dag).directory);
    });
    fc.assert(property, {
      numRuns: RUNS,
      examples: [[DUPLICATE_PARENTS]],
    });
  });

  it("is the same byte for byte in octopus merges of up to six parents", async () => {
    const dags = dagArbitrary({ maxCommits: 30, maxParents: 6 });
    const property = fc.property(dags, (dag) => {
      expectAsGit(writeDag(folder, dag).directory);
    });
    fc.assert(property, {
      numRuns: RUNS,
      examples: [[DUPLICATE_PARENTS]],
    });
  });
});
