import { median, percentile, sum } from "./stats.mjs";

const WARM_UP_MAX_MS = 4000;

/**
 * Lets contestants do the same work in turns, so that a disk or a machine that changes its
 * speed changes it for all of them.
 *
 * A contestant has `name`, `steps` (how many steps a call of `round` does) and `round()`,
 * which answers the milliseconds that each step took; where steps overlap, the milliseconds of the
 * whole; and from another process, the milliseconds that its processor worked. Before the first round each does uncounted ones until it did
 * `warmUp` steps or spent 4 seconds: compilers take thousands of steps to settle. The order
 * turns by one each round.
 *
 * @returns for each contestant: name, `rates` (steps per second, one a round), `rate` (their
 * median), `p50` and `p99` of a step and `cpu` per step, in milliseconds (`cpus` are those of
 * the rounds, of which it is the median)
 */
export async function interleave(contestants, rounds, warmUp) {
  for (const { round, steps } of contestants) {
    const until = performance.now() + WARM_UP_MAX_MS;
    for (let done = 0; done < warmUp && performance.now() < until; done += steps) await round();
  }
  const results = contestants.map(({ name }) => ({ name, rates: [], times: [], cpu: [] }));
  for (let round = 0; round < rounds; round++) {
    for (let turn = 0; turn < contestants.length; turn++) {
      const at = (round + turn) % contestants.length;
      const { steps } = contestants[at];
      const before = process.cpuUsage();
      const { times, total = sum(times), cpu } = await contestants[at].round();
      const { user, system } = process.cpuUsage(before);
      results[at].cpu.push((cpu ?? (user + system) / 1000) / steps);
      results[at].rates.push((steps * 1000) / total);
      for (const time of times) results[at].times.push(time);
    }
  }
  return results.map(({ name, rates, times, cpu }) => ({
    name,
    rates,
    rate: median(rates),
    p50: percentile(times, 0.5),
    p99: percentile(times, 0.99),
    cpus: cpu,
    cpu: median(cpu),
  }));
}

/** The median over the rounds of one contestant's rate divided by another's in the same round. */
export function ratio(a, b) {
  return median(a.rates.map((rate, round) => rate / b.rates[round]));
}

/** The same of what their processors worked. */
export function cpuRatio(a, b) {
  return median(a.cpus.map((cpu, round) => cpu / b.cpus[round]));
}

/** Prints what each contestant did. */
export function printRates(results) {
  const line = (name, ...cells) =>
    console.log(`  ${name.padEnd(32)}${cells.map((cell) => cell.padStart(11)).join("")}`);
  line("", "steps/s", "p50 ms", "p99 ms", "CPU ms");
  for (const { name, rate, p50, p99, cpu } of results) {
    line(
      name,
      Math.round(rate).toLocaleString("en-US"),
      ...[p50, p99, cpu].map((n) => n.toFixed(3)),
    );
  }
}
