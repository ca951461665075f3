import { agstateContestant, recordCommits } from "../lib/agstate.mjs";
import { bareContestant, rowSizes } from "../lib/bare.mjs";
import { saverContestant } from "../lib/langgraph.mjs";
import { interleave, printRates, ratio } from "../lib/rounds.mjs";
import { discard, scratch } from "../lib/scratch.mjs";
import { stateSource } from "../lib/states.mjs";
import { sum } from "../lib/stats.mjs";

const RECORDED = 50;
const BARE_AT_LEAST = 0.6;
const SAVER_AT_LEAST = 1.5;

/** One agent commits one state after another, 1 KiB of it new: agstate, bare SQLite, SqliteSaver. */
export async function oneAgent(report, { rounds, steps, warmUp }) {
  for (const [kind, described] of [
    ["small", "1 KiB state"],
    ["large", "4 KiB state"],
  ]) {
    report.heading(`One agent, 1 KiB changed per step, ${described}, synchronous=FULL`);
    await compare(report, kind, described, { rounds, steps, warmUp });
  }
}

async function compare(report, kind, described, { rounds, steps, warmUp }) {
  const directories = [scratch(), scratch(), scratch(), scratch()];
  const [record, ours, bare, theirs] = directories;
  const { writes, roundTrips } = await recordCommits(record, stateSource(kind, 1), RECORDED);
  const shapes = writes.map(rowSizes);
  const contestants = [
    await agstateContestant("agstate branch.commit", ours, stateSource(kind, 2), steps),
    bareContestant("bare better-sqlite3", bare, shapes, steps),
    saverContestant("LangGraph SqliteSaver (FULL)", theirs, stateSource(kind, 2), steps),
  ];
  const results = await interleave(contestants, rounds, warmUp);
  for (const contestant of contestants) await contestant.close();
  for (const directory of directories) discard(directory);

  printRates(results);
  const [agstate, floor, saver] = results;
  report.note(
    `bare loop: a transaction of ${shapes[0].length} object rows (${shapes[0].join(", ")} bytes; ` +
      "the last is what agstate's commit row holds) and one ref row; no hashing, ids given.",
  );
  const label = (text) => `${described}: ${text}`;
  report.atLeast(label("of the bare loop"), ratio(agstate, floor), "x", BARE_AT_LEAST);
  report.atLeast(label("of SqliteSaver at FULL"), ratio(agstate, saver), "x", SAVER_AT_LEAST);
  report.figure(label("commit, p50"), agstate.p50, "ms");
  report.figure(label("commit, p99"), agstate.p99, "ms");
  const perCommit = (measure) => sum(writes.map(measure)) / writes.length;
  report.figure(
    label("Git objects per commit"),
    perCommit(({ objects, commit }) => objects.length + 1 + commit.inline.length),
    "objects",
  );
  report.figure(
    label("rows per commit"),
    perCommit((w) => w.objects.length + 2),
    "rows",
  );
  report.figure(
    label("bytes per commit"),
    perCommit((w) => sum(rowSizes(w))),
    "bytes",
  );
  report.figure(label("round trips per commit"), roundTrips, "calls");
}
