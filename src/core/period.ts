import { AgstateError } from "./errors.js";
import { quoteForMessage } from "./names.js";

/** An ISO 8601 duration with at least one part, in whole numbers. */
const PERIOD =
  /^P(?=\d|T\d)(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?$/;

/** Seconds of each part, in their order; years and months as long as they are on average in the Gregorian calendar. */
const SECONDS = [31_556_952, 2_629_746, 604_800, 86_400, 3600, 60, 1] as const;

/** How long what belongs to a workflow is kept: ISO 8601 periods, of which one at least is there. */
export interface RetentionPolicy {
  /** Of states and records: what is older, and nothing younger refers to, becomes tombstones. */
  readonly payload?: string;
  /** Of commits: older ones are dropped. Not shorter than `payload`. */
  readonly history?: string;
}

/** Whether it is an ISO 8601 period, such as `P90D`. */
function isPeriod(given: unknown): given is string {
  return typeof given === "string" && PERIOD.test(given);
}

/** Tells which of two periods is longer on average: below 0 the other. It orders policies, and measures nothing. */
function comparePeriods(a: string, b: string): number {
  return averageSeconds(a) - averageSeconds(b);
}

function averageSeconds(period: string): number {
  const [, ...parts] = PERIOD.exec(period) as RegExpExecArray;
  return parts.reduce((sum, part, i) => sum + Number(part ?? 0) * (SECONDS[i] as number), 0);
}

/**
 * Reads a retention policy: one period, which is of payload, the text `payload=P90D;history=P1Y` with both or
 * one of them, or an object that says the same.
 *
 * @throws AgstateError `INVALID_ARGUMENT`
 */
export function parseRetention(given: unknown): RetentionPolicy {
  const policy = typeof given === "string" ? fromText(given) : fromObject(given);
  const { payload, history } = policy;
  if (payload !== undefined && history !== undefined && comparePeriods(history, payload) < 0) {
    throw invalid(
      given,
      `keeps history for ${history}, and payload for ${payload}: history must not be shorter than payload`,
    );
  }
  return policy;
}

/** The one text of a retention policy: its period alone where that is of payload, else both by name. */
export function retentionText({ payload, history }: RetentionPolicy): string {
  if (history === undefined) return payload as string;
  return `${payload === undefined ? "" : `payload=${payload};`}history=${history}`;
}

function fromText(text: string): RetentionPolicy {
  if (PERIOD.test(text)) return { payload: text };
  const parts = text.split(";").map((part) => /^(payload|history)=(.*)$/s.exec(part));
  const named = parts.map((part) => part?.[1]);
  if (parts.includes(null) || new Set(named).size < named.length) {
    throw invalid(text, "is not a period; write for example P90D, or payload=P90D;history=P1Y");
  }
  return checked(text, Object.fromEntries(parts.map((part) => [part?.[1], part?.[2]])));
}

function fromObject(given: unknown): RetentionPolicy {
  const keys = typeof given === "object" && given !== null ? Object.keys(given) : [];
  const known = keys.every((key) => key === "payload" || key === "history");
  const members = given as { readonly [key: string]: unknown };
  const said = keys.filter((key) => members[key] !== undefined);
  if (Array.isArray(given) || !known || said.length === 0) {
    throw invalid(given, "is not a period, and no object with the periods payload and history");
  }
  return checked(given, Object.fromEntries(said.map((key) => [key, members[key]])));
}

function checked(given: unknown, { payload, history }: Record<string, unknown>): RetentionPolicy {
  for (const [name, period] of Object.entries({ payload, history })) {
    if (period === undefined || isPeriod(period)) continue;
    throw invalid(
      given,
      `has ${name} ${quoteForMessage(String(period))}, which is not an ISO 8601 period of whole numbers; write for example P90D`,
    );
  }
  return {
    ...(isPeriod(payload) && { payload }),
    ...(isPeriod(history) && { history }),
  };
}

function invalid(given: unknown, why: string): AgstateError {
  const shown = typeof given === "string" ? given : (JSON.stringify(given) ?? String(given));
  return new AgstateError("INVALID_ARGUMENT", `retention policy ${quoteForMessage(shown)} ${why}`, {
    retentionPolicy: shown,
  });
}
