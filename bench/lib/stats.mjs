/** The value below which a share of the samples lies, by the nearest-rank method. */
export function percentile(samples, share) {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)];
}

/** The middle sample, or the mean of the two in the middle. */
export function median(samples) {
  const sorted = [...samples].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

export function sum(samples) {
  return samples.reduce((total, sample) => total + sample, 0);
}
