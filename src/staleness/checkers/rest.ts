import { type CredentialScope, checkCredentials, parseBase } from "../credentials.js";
import type { Egress, EgressAnswer } from "../egress.js";
import type { CheckContext, Observation } from "../types.js";
import { failed, settledBy, unknown } from "./answers.js";

/** Who asks an API. */
export interface RestCredentials {
  /** With it the token is sent as Basic, without it as Bearer. */
  readonly user?: string;
  readonly token?: string;
}

/** A JSON object as it came. */
export type Fields = Readonly<Record<string, unknown>>;

/** What is asked of an API, and how its answer is read. */
export interface RestQuestion {
  /** Below the base; of constants and checked ids alone. */
  readonly path: string;
  /** Makes an observation of a JSON object, which may have any shape. */
  read(fields: Fields, answer: EgressAnswer): Observation;
  /** Looks at status and headers before anyone does; null leaves the answer to the usual rules. */
  early?(answer: EgressAnswer): Observation | null;
}

const FOREIGN = "answered by another origin than that of its base; configure the one that answers";

/** Asks an API that lies below a base URL. */
export type RestApi = (question: RestQuestion, context: CheckContext) => Promise<Observation>;

/**
 * @param what how errors name the API
 * @param headers what every request has besides
 * @throws AgstateError `INVALID_ARGUMENT` for a base or credentials that cannot be used
 */
export function restApi(
  egress: Egress,
  what: string,
  { base, ...who }: { readonly base: string } & RestCredentials,
  headers: Readonly<Record<string, string>> = {},
): RestApi {
  const { origin, pathname } = parseBase(base, `the base URL of ${what}`);
  const below = `${origin}${pathname === "/" ? "" : pathname}`;
  const credentials = credentialsOf(below, who);
  return async (question, context) => {
    try {
      const answer = await egress.request({
        url: `${below}${question.path}`,
        headers: { accept: "application/json", ...headers },
        credentials,
        signal: context.signal,
      });
      return await observed(answer, question, origin, context.now());
    } catch (error) {
      return failed(error, context.signal);
    }
  };
}

function credentialsOf(base: string, { user, token }: RestCredentials): readonly CredentialScope[] {
  if (token === undefined) return [];
  const authorization =
    user === undefined
      ? `Bearer ${token}`
      : `Basic ${Buffer.from(`${user}:${token}`, "utf8").toString("base64")}`;
  return checkCredentials([{ base, headers: { authorization } }]);
}

async function observed(
  answer: EgressAnswer,
  question: RestQuestion,
  origin: string,
  now: number,
): Promise<Observation> {
  const { status, headers } = answer;
  // What another origin says, such as one where people log in, is nothing of this API's, not even that something is gone.
  const foreign = answer.finalOrigin === origin ? null : unknown(FOREIGN);
  const settled =
    foreign ??
    question.early?.(answer) ??
    settledBy(status, headers, now) ??
    unreadable(status, headers);
  if (settled !== null) {
    answer.discard();
    return settled;
  }
  const fields = parseObject(await answer.body());
  return fields === null
    ? unknown("answered with what is no JSON object")
    : question.read(fields, answer);
}

/** Why an answer is none of this API; null when it can be read. */
function unreadable(status: number, headers: Headers): Observation | null {
  if (status !== 200) return unknown(`answered with ${status}, without content`);
  const type = headers.get("content-type") ?? "";
  return /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(type)
    ? null
    : unknown("answered with something else than JSON");
}

function parseObject(bytes: Buffer): Fields | null {
  try {
    return fieldsOf(JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)));
  } catch {
    return null;
  }
}

/** The value, if it is a JSON object. */
export function fieldsOf(value: unknown): Fields | null {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Fields)
    : null;
}

/** A text of an answer in quotes, after a space; empty where there is none. */
export function quoted(title: unknown): string {
  return typeof title === "string" && title !== "" ? ` "${title}"` : "";
}
