import { AgstateError } from "../core/errors.js";
import { quoteForMessage } from "../core/names.js";

/** A way on from a commit: `~n` (n first parents back) or `^n` (the n-th parent). */
export interface RevisionStep {
  readonly kind: "~" | "^";
  readonly count: number;
}

/** A revision as parsed: a base, an entry of its reflog, ways on, and a JSON Pointer into the state. */
export interface Revision {
  readonly text: string;
  /** A ref name, a shortened or full id, or `@` forms already taken off. */
  readonly base: string;
  /** The n of `base@{n}`. */
  readonly reflog: number | null;
  readonly steps: readonly RevisionStep[];
  readonly pointer: string | null;
}

const NUMBER_MAX = 1_000_000_000;

/**
 * Parses a revision in Git's manner: `canonical`, `agents/a/try@{1}`,
 * `canonical~3`, `1a2b3c^2`, `canonical:/messages/0`.
 *
 * @throws AgstateError `INVALID_REVISION`
 */
export function parseRevision(text: string): Revision {
  if (typeof text !== "string" || text === "") {
    throw invalid(String(text), "is empty; give a ref name, an id, or for example canonical~3");
  }
  const colon = text.indexOf(":");
  const pointer = colon < 0 ? null : text.slice(colon + 1);
  if (pointer !== null && pointer !== "" && !pointer.startsWith("/")) {
    throw invalid(text, 'has a path after ":" that does not begin with "/"');
  }
  const revision = colon < 0 ? text : text.slice(0, colon);
  const match = /^(.*?)(?:@\{([^}]*)\})?((?:[~^][0-9]*)*)$/s.exec(revision);
  const base = match?.[1] ?? "";
  if (match === null || base === "") {
    throw invalid(text, "does not begin with a ref name or an id");
  }
  let reflog: number | null = null;
  if (match[2] !== undefined) {
    if (!/^[0-9]+$/.test(match[2]) || Number(match[2]) > NUMBER_MAX) {
      throw invalid(text, `has @{${match[2]}}; only a number is understood there, such as @{1}`);
    }
    reflog = Number(match[2]);
  }
  const steps: RevisionStep[] = [];
  for (const [, kind, digits] of (match[3] as string).matchAll(/([~^])([0-9]*)/g)) {
    const count = digits === "" ? 1 : Number(digits);
    if (count > NUMBER_MAX) throw invalid(text, `goes ${digits} steps back; at most ${NUMBER_MAX}`);
    steps.push({ kind: kind as "~" | "^", count });
  }
  return { text, base, reflog, steps, pointer };
}

function invalid(text: string, problem: string): AgstateError {
  return new AgstateError("INVALID_REVISION", `revision ${quoteForMessage(text)} ${problem}`, {
    revision: text,
  });
}
