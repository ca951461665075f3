/**
 * Kills processes in the middle of their steps and starts them again, against a real HTTP service, and
 * counts what was lost, done twice or done again; the last line is the tally.
 *
 *     npm run crash [-- --kills 1000] [--store sqlite|postgres|both] [--races 6] [--replays 50]
 *                   [--lanes 3] [--seed N]
 *
 * `--races`: ten processes at once on one branch, so many times on each store. `--replays`: kills of
 * a run of 100 parallel steps on each store. Exits with 1 when anything is not as promised.
 */
import { parseArgs } from "node:util";
import { Tally } from "./crash/audit.mjs";
import { KillPlan } from "./crash/kills.mjs";
import { makePlace } from "./crash/place.mjs";
import { race, replays } from "./crash/together.mjs";

const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "1000" },
    store: { type: "string", default: "both" },
    races: { type: "string", default: "6" },
    replays: { type: "string", default: "50" },
    lanes: { type: "string", default: "3" },
    seed: { type: "string", default: String(Date.now() % 2 ** 31) },
  },
});
const kinds = { sqlite: ["sqlite"], postgres: ["postgres"], both: ["sqlite", "postgres"] }[
  values.store
];
if (kinds === undefined)
  throw new Error(`--store is ${values.store}; it is sqlite, postgres or both`);
const count = (name) => {
  const number = Number(values[name]);
  if (!Number.isSafeInteger(number) || number < 0)
    throw new Error(`--${name} is ${values[name]}, and no count`);
  return number;
};
/** So much is wrong that there is no use in going on. */
const FAULTS_MAX = 20;
const PROGRESS_EVERY = 100;

const tally = new Tally();
let told = 0;
const random = dice(count("seed"));
console.log(`seed ${values.seed}`);
const places = [];
try {
  for (const kind of kinds) places.push(await makePlace(kind));
  const kills = Math.ceil(count("kills") / places.length);
  const plans = places.map((place) => new KillPlan(place, { tally, random }));
  for (const [i, plan] of plans.entries()) {
    if (kills === 0) continue;
    await plan.prepare(kills);
    console.log(`${kinds[i]}: ${plan.coverage}`);
  }
  await inLanes(count("lanes"), () => {
    const turn = plans.shift();
    plans.push(turn);
    return turn.next() ?? plans.map((plan) => plan.next()).find((work) => work !== undefined);
  });
  const others = places.flatMap((place) => [
    ...Array.from({ length: count("races") }, (_, round) => () => {
      const variant = round % 2 === 0 ? "honoured" : "asked";
      return race({ place, variant, round, random, tally });
    }),
    () => replays({ place, rounds: count("replays"), random, tally }),
    async () => {
      for (const problem of await place.check()) tally.wrong(null, `${place.kind}: ${problem}`);
    },
  ]);
  await inLanes(1, () => others.shift());
} finally {
  for (const place of places) await place.close();
}
const points = [...tally.points].sort(([a], [b]) => (a < b ? -1 : 1));
console.log(points.map(([moment, times]) => `${moment} ${times}`).join(", "));
console.log(String(tally));
process.exit(tally.faults.length > 0 ? 1 : 0);

/** Does pieces of work, some at a time, until there are none, or too much is wrong; one that ends may bring new ones. */
async function inLanes(lanes, next) {
  const more = () => (tally.faults.length < FAULTS_MAX ? next() : undefined);
  const lane = async (first) => {
    for (let work = first; work !== undefined; work = more()) {
      try {
        await work();
      } catch (error) {
        tally.wrong(null, error.stack);
      }
      if (tally.kills < told + PROGRESS_EVERY) continue;
      told = tally.kills;
      console.log(String(tally));
    }
  };
  for (let work = more(); work !== undefined; work = more()) {
    await Promise.all(Array.from({ length: lanes }, (_, i) => lane(i === 0 ? work : more())));
  }
}

/** Random numbers of a seed. When a kill hits stays a matter of the machine. */
function dice(seed) {
  let a = seed;
  return () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
