/** From where on agstate acts: parts of a limit as ratios, and of time, in per cent, in which tasks waited for memory. */
export const DEFAULT_THRESHOLDS = { usage: 0.85, critical: 0.95, stall: 20 } as const;
