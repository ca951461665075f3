import type { Draft } from "../objects/draft/types.js";

/** Ours stays as it is. */
export const KEEP = Symbol("keep");

/** What a place becomes: ours unchanged, a new value, or nothing. */
export type Result = typeof KEEP | Draft | null;

/** A rule does not decide here. */
export const CONFLICT = Symbol("conflict");
