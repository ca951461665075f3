import { mkdirSync, writeFileSync } from "node:fs";
import { machine, measuredCommit } from "./machine.mjs";

const WIDTH = 80;
const LABEL = 46;

/** Collects the figures of a run, prints them as they come, and writes them down at the end. */
export class Report {
  rows = [];

  /** The machine, on which every figure depends. */
  opening() {
    const { cpu, cores, memory, node, platform, filesystem } = machine();
    console.log(
      `${cpu}, ${cores} cores, ${memory}, Node.js ${node}, ${platform}, ${filesystem ?? "unknown"}`,
    );
    if (filesystem === "tmpfs") {
      this.note("the temporary directory is in memory: syncing costs nothing here; set TMPDIR.");
    }
  }

  /**
   * How many targets were met, and which were not; then the results are written.
   *
   * @param quick whether only a fraction of the work was done: nothing is written then
   */
  closing(name, quick) {
    const judged = this.rows.filter((row) => row.met !== null);
    const missed = judged.filter((row) => !row.met);
    if (judged.length > 0) {
      console.log(`\n${judged.length - missed.length} of ${judged.length} targets met`);
    }
    for (const { line, value, unit, target } of missed) {
      console.log(`  not met: ${line}: ${value} ${unit}, target ${target}`);
    }
    if (quick) return;
    this.#write(name);
    console.log(`written to bench/results/${name}.json`);
  }

  heading(text) {
    console.log(`\n${text}\n${"-".repeat(WIDTH)}`);
  }

  /** A line of explanation, broken to the width of the table. */
  note(text) {
    let line = " ";
    for (const word of text.split(" ")) {
      if (line.length + 1 + word.length > WIDTH) {
        console.log(line);
        line = " ";
      }
      line += ` ${word}`;
    }
    console.log(line);
  }

  /** A figure without a target. */
  figure(line, value, unit) {
    this.#add({ line, value, unit, target: null, met: null });
  }

  atLeast(line, value, unit, limit) {
    this.#add({ line, value, unit, target: `>= ${limit}`, met: value >= limit });
  }

  atMost(line, value, unit, limit) {
    this.#add({ line, value, unit, target: `<= ${limit}`, met: value <= limit });
  }

  /** A figure that could not be had, and why. */
  skipped(line, unit, target, why) {
    this.rows.push({ line, value: null, unit, target, met: null });
    console.log(`${line.padEnd(LABEL)}   skipped`);
    this.note(why);
  }

  #add(row) {
    const value = rounded(row.value);
    this.rows.push({ ...row, value });
    const shown = `${formatted(value)} ${row.unit}`;
    const verdict = row.met === null ? "" : row.met ? "met" : "NOT MET";
    const target = (row.target ?? "").padEnd(8);
    console.log(`${row.line.padEnd(LABEL)}${shown.padStart(17)}  ${target} ${verdict}`.trimEnd());
  }

  /** Writes `{ commit, machine, date, rows }` to `bench/results/<name>.json`. */
  #write(name) {
    const directory = new URL("../results/", import.meta.url);
    mkdirSync(directory, { recursive: true });
    const result = {
      commit: measuredCommit(),
      machine: machine(),
      date: new Date().toISOString(),
      rows: this.rows,
    };
    writeFileSync(new URL(`${name}.json`, directory), `${JSON.stringify(result, null, 2)}\n`);
  }
}

/** Four significant digits: what lies below is noise. Large counts stay whole. */
function rounded(value) {
  return Math.abs(value) >= 1000 ? Math.round(value) : Number(value.toPrecision(4));
}

function formatted(value) {
  return value.toLocaleString("en-US", { maximumFractionDigits: 4, useGrouping: true });
}
