import { playRound, text } from "./round.mjs";

const VARIANTS = ["honoured", "asked", "probed", "governed"];
/** How many kills a round is to have. */
const KILLS_A_ROUND = 5;
/** Which part of the kills comes at named points, while there are enough of them; the others come at any time. */
const NAMED_SHARE = 0.8;

/**
 * Plans kills on one store: each named point at each place of the program, by variant, in an order
 * in which every point comes early; and kills at random times.
 *
 * A kill that does not come about, since an earlier one led the run past its point, is put back, and
 * is then the first of a round: if it does not come about there, that is a fault.
 */
export class KillPlan {
  #place;
  #tally;
  #random;
  #rounds = 0;
  #usual = new Map();
  #pools = new Map(VARIANTS.map((variant) => [variant, []]));
  #planned = 0;
  #known = 0;

  constructor(place, { tally, random }) {
    this.#place = place;
    this.#tally = tally;
    this.#random = random;
  }

  /** Runs each variant undisturbed, which tells what points there are, and plans so many kills. */
  async prepare(kills) {
    const all = [];
    for (const variant of VARIANTS) {
      const { outcome } = await this.#play(variant, []);
      this.#usual.set(variant, outcome);
      // Which entries go out together later is a matter of timing.
      const points = outcome.points
        .map((point, order) => ({ ...point, order, variant }))
        .filter(({ place, nth }) => place !== "all" || nth === 1);
      if (variant === "probed") points.push(...points.flatMap(probes));
      all.push(...points);
    }
    this.#known = all.length;
    const named = earlyOfEach(shuffled(all, this.#random)).slice(0, Math.ceil(kills * NAMED_SHARE));
    this.#planned = named.length;
    for (const kill of named) this.#pools.get(kill.variant).push(kill);
    for (let i = named.length; i < kills; i++) {
      const pool = this.#pools.get(VARIANTS[i % VARIANTS.length]);
      const share = this.#random();
      const order = (share * all.length) / VARIANTS.length;
      const kill = { moment: "chance", order, left: 1 - share };
      pool.splice(Math.floor(this.#random() * pool.length), 0, kill);
    }
  }

  /** What part of the named points is in the plan. */
  get coverage() {
    return `${this.#planned} of ${this.#known} named points and places`;
  }

  /** The next round as a piece of work; undefined when none is left. */
  next() {
    const [variant, pool] = [...this.#pools].sort(([, a], [, b]) => b.length - a.length)[0];
    if (pool.length === 0) return undefined;
    const kills = pool[0].again ? [pool.shift()] : pool.splice(0, KILLS_A_ROUND);
    return async () => {
      const given = kills
        .sort((a, b) => a.order - b.order)
        .flatMap((kill) => (kill.lead ? [kill.lead, kill] : [kill]));
      const { left } = await this.#play(variant, given);
      for (const kill of left) {
        if (kill.isLead) continue;
        if (kill === kills[0] && kill.moment !== "chance") {
          this.#tally.wrong(null, `${variant}: ${text(kill)} is never come to`);
        } else pool.unshift({ ...kill, again: true });
      }
    };
  }

  #play(variant, kills) {
    return playRound({
      place: this.#place,
      name: `${variant}/round-${this.#rounds++}`,
      variant,
      kills,
      usual: this.#usual.get(variant),
      random: this.#random,
      tally: this.#tally,
    });
  }
}

/** Kills in a probe, which there is only where a process died after its step's effect. */
function probes(point) {
  if (
    point.moment !== "tool:answered" ||
    point.nth > 1 ||
    !/^(?:re|ch|book|conf)/.test(point.place)
  )
    return [];
  const order = point.order + 0.5;
  return ["probe:before", "probe:answered"].map((moment) => ({
    ...point,
    moment,
    order,
    lead: { ...point, isLead: true },
  }));
}

function shuffled(list, random) {
  return list
    .map((each) => ({ each, by: random() }))
    .sort((a, b) => a.by - b.by)
    .map(({ each }) => each);
}

/** Puts the first of each variant and moment before all others. */
function earlyOfEach(kills) {
  const seen = new Set();
  const isFirst = new Map(
    kills.map((kill) => {
      const first = !seen.has(kill.moment);
      seen.add(kill.moment);
      return [kill, first];
    }),
  );
  return [
    ...kills.filter((kill) => isFirst.get(kill)),
    ...kills.filter((kill) => !isFirst.get(kill)),
  ];
}
