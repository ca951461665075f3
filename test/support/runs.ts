/** How much is tried: as much as every run of the tests can wait for, or, in the nightly run, far more. */
export function usually(usual: number, nightly: number): number {
  return process.env.AGSTATE_RUNS === undefined ? usual : nightly;
}
