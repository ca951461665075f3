import { inspect, isDeepStrictEqual } from "node:util";

const SHOWN = { depth: 6, breakLength: Number.POSITIVE_INFINITY };

/** The step that always fails, and after whose failure the program goes on. */
const REFUSED = "refuse";
const FAULTS_SHOWN = 20;

/** What was found in all rounds; `faults` tells each thing that must not be. */
export class Tally {
  kills = 0;
  effects = 0;
  lost = 0;
  doubled = 0;
  silentlyDoubled = 0;
  runAgain = 0;
  /** Kills by named point and by chance. */
  points = new Map();
  faults = [];

  /** Counts what is wrong and tells it. */
  wrong(kind, what) {
    if (kind !== null) this[kind]++;
    this.faults.push(what);
    if (this.faults.length <= FAULTS_SHOWN) console.log(`FAULT ${what}`);
  }

  toString() {
    const { kills, effects, lost, doubled, silentlyDoubled, runAgain, faults } = this;
    return `${kills} kills, ${effects} effects, ${lost} lost, ${doubled} doubled, ${silentlyDoubled} silently doubled, ${runAgain} steps run again, ${faults.length} faults`;
  }
}

/**
 * Watches one run over all its lives: what is once on record stays as it is, and is not done again.
 *
 * What is promised of paid calls and of tools is the same: in a process's life no tool is called
 * whose step was sealed when the life began, nor after its step came back in that life. A tool may so be
 * called once more for each kill between its call and its seal, and for no other reason.
 */
export class RunAudit {
  #tally;
  #what;
  /** The last that is known of each step, by number. */
  steps = new Map();

  constructor(tally, what) {
    this.#tally = tally;
    this.#what = what;
  }

  /** Reads what is on record, when no process is at work. */
  async read(branch) {
    await branch.refresh();
    const now = new Map();
    for await (const { number, name, status, input, output, key } of branch.steps()) {
      now.set(number, { name, status, key, text: JSON.stringify([name, key, input, output]) });
    }
    for (const [number, { status, text }] of this.steps) {
      if (status !== "completed" || now.get(number)?.text === text) continue;
      this.#wrong("runAgain", `step ${number} was ${text} and is ${now.get(number)?.text}`);
    }
    this.steps = now;
  }

  /** Holds what a life said against what was on record before it. */
  lived(said) {
    const done = new Set();
    for (const [number, { name, status }] of this.steps) {
      // The code goes on after the refusal: its error must come back as it was, too.
      const wentOn = name === REFUSED && [...this.steps.keys()].some((other) => other > number);
      if (status === "completed" || wentOn) done.add(name);
    }
    for (const [word, name, ...rest] of said) {
      if (word === "tool" && done.has(name))
        this.#wrong("runAgain", `${name} was sealed, and was called again`);
      if (word !== "back") continue;
      done.add(name);
      this.#same(name, rest.join(" "));
    }
  }

  /** Outputs that the code was given, by the step's name. */
  #given = new Map();

  #same(name, text) {
    const before = this.#given.get(name) ?? text;
    this.#given.set(name, before);
    if (before !== text) this.#wrong("runAgain", `${name} gave ${before}, and then ${text}`);
  }

  /** Holds the effects that the service had against those that there must be. */
  effects(service, names, { honoursKeys }) {
    for (const name of names) {
      const had = service.effects.filter((effect) => effect.name === name);
      this.#tally.effects += had.length;
      if (had.length === 0) this.#wrong("lost", `${name} did not happen`);
      for (let i = 1; i < had.length; i++) {
        this.#wrong(honoursKeys ? "doubled" : "silentlyDoubled", `${name} happened twice`);
      }
      const keys = new Set(
        service.requests.filter((each) => each.name === name).map(({ key }) => key),
      );
      const step = [...this.steps.values()].find((each) => each.name === name);
      if (keys.size > 1 || !keys.has(step?.key)) {
        this.#wrong(
          null,
          `${name} was asked for by ${[...keys]}, and is on record with ${step?.key}`,
        );
      }
    }
    for (const { name } of service.effects) {
      if (!names.includes(name)) this.#wrong("doubled", `${name} happened and was not asked for`);
    }
  }

  expect(what, is, wanted) {
    const [a, b] = [inspect(is, SHOWN), inspect(wanted, SHOWN)];
    if (!isDeepStrictEqual(is, wanted)) this.#wrong(null, `${what}: ${a}, and not ${b}`);
  }

  #wrong(kind, what) {
    this.#tally.wrong(kind, `${this.#what}: ${what}`);
  }
}
