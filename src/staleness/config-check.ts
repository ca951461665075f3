import { AgstateError, isAgstateError } from "../core/errors.js";
import { isJsonObject } from "../core/json.js";
import { formatPointer } from "../core/json-pointer.js";
import { quoteForMessage } from "../core/names.js";
import { type Environment, fillIn, variablesOf } from "../core/variables.js";
import { CHECK_BOUNDS, type CheckBounds } from "./check.js";
import { type CredentialScope, checkCredentials, parseBase } from "./credentials.js";
import { allowList } from "./egress-allowed.js";
import { parseTime } from "./tolerance.js";

/** What checkers look at, and with which rights; each part may be left out. */
export interface CheckerConfig extends CheckBounds {
  /** The directory that files and local repositories lie below. */
  readonly root?: string;
  /** Hosts, `host:port` and ranges that may be asked though their addresses are not public. */
  readonly allow?: readonly string[];
  /** For resources of HTTP and remote repositories: each goes to what lies below its base alone. */
  readonly credentials?: readonly CredentialScope[];
  readonly confluence?: {
    readonly base: string;
    readonly user?: string;
    readonly token?: string;
    readonly api?: "v1" | "v2";
  };
  readonly jira?: {
    readonly base: string;
    readonly user?: string;
    readonly token?: string;
    readonly api?: "2" | "3";
  };
  readonly github?: { readonly base?: string; readonly token?: string };
  /** Folders in which `git` is looked for, as `PATH` has them; default the system's own. Not a member of files. */
  readonly searchPath?: string;
}

/** What a configuration is read with. */
interface Reading {
  /** What variables stand for, in a file: there times are texts, such as `10s`, and no `searchPath` is known. */
  readonly environment?: Environment;
}

type Members = Readonly<Record<string, unknown>>;

/** The members of a file that are times, and the bounds that they are. */
const TIMES = { timeout: "timeoutMs", total: "totalMs", skew: "skewMs" } as const;
const COMMON = ["root", "allow", "credentials", "confluence", "jira", "github"];

/**
 * Checks a configuration of checkers, and fills in its variables.
 *
 * @throws AgstateError `INVALID_VALUE` with the place as a JSON Pointer in `details.at`; it holds no secret
 */
export function checkCheckers(given: unknown, how: Reading): CheckerConfig {
  const times = how.environment === undefined ? Object.values(TIMES) : Object.keys(TIMES);
  const more = how.environment === undefined ? ["searchPath"] : [];
  const known = [...COMMON, ...times, "retries", "concurrency", ...more];
  const all = membersAt(given, "", known);
  const config: Record<string, unknown> = {};
  const put = (member: string, value: unknown) => {
    if (all[member] !== undefined) config[member] = value;
  };
  for (const member of ["root", "searchPath"]) put(member, textAt(all[member], `/${member}`));
  put("allow", listAt(all.allow, "/allow", allowedAt));
  put(
    "credentials",
    listAt(all.credentials, "/credentials", (one, at) => credentialsAt(one, at, how)),
  );
  put("confluence", siteAt(all.confluence, "/confluence", ["v1", "v2"], how));
  put("jira", siteAt(all.jira, "/jira", ["2", "3"], how));
  put("github", siteAt(all.github, "/github", null, how));
  return { ...config, ...boundsAt(all, how) };
}

function allowedAt(given: unknown, at: string): string {
  return atPlace(at, () => {
    allowList([given as string]);
    return given as string;
  });
}

function credentialsAt(given: unknown, at: string, how: Reading): CredentialScope {
  const { base, headers } = membersAt(given, at, ["base", "headers"]);
  if (typeof base !== "string") throw invalid(`${at}/base`, "is not a URL of http or https");
  const secrets = Object.entries(membersAt(headers, `${at}/headers`)).map(([name, value]) => {
    const place = `${at}/headers${formatPointer([name])}`;
    return [name, secretAt(value, place, how) ?? ""] as const;
  });
  const scope = { base, headers: Object.fromEntries(secrets) };
  atPlace(at, () => checkCredentials([scope]));
  return scope;
}

/** A site of one of the APIs; GitHub has a base of its own, no user and no choice of API. */
function siteAt(given: unknown, at: string, apis: readonly string[] | null, how: Reading): unknown {
  if (given === undefined) return undefined;
  const members = apis === null ? ["base", "token"] : ["base", "user", "token", "api"];
  const { base, user, token, api } = membersAt(given, at, members);
  if (base !== undefined || apis !== null) {
    if (typeof base !== "string") throw invalid(`${at}/base`, "is not a URL of http or https");
    atPlace(`${at}/base`, () => parseBase(base, "the base URL"));
  }
  if (api !== undefined && !apis?.includes(api as string)) {
    throw invalid(`${at}/api`, `is not known; there are ${apis?.map(quoteForMessage).join(", ")}`);
  }
  const named = secretAt(user, `${at}/user`, how);
  const secret = secretAt(token, `${at}/token`, how);
  if (named !== undefined && secret === undefined) {
    throw invalid(`${at}/token`, "is missing; a user is known by a token");
  }
  return {
    ...(base !== undefined && { base }),
    ...(named !== undefined && { user: named }),
    ...(secret !== undefined && { token: secret }),
    ...(api !== undefined && { api }),
  };
}

function secretAt(given: unknown, at: string, { environment }: Reading): string | undefined {
  const text = textAt(given, at);
  if (text === undefined || environment === undefined) return text;
  const variables = variablesOf(text, environment);
  if ("problem" in variables) throw invalid(at, variables.problem);
  return fillIn(text, environment);
}

function boundsAt(all: Members, { environment }: Reading): CheckBounds {
  const bounds: Record<string, unknown> = {};
  for (const member of ["retries", "concurrency", ...Object.values(TIMES)]) {
    bounds[member] = all[member];
  }
  const places: Record<string, string> = {};
  for (const [member, bound] of environment === undefined ? [] : Object.entries(TIMES)) {
    const given = all[member];
    places[bound] = member;
    bounds[bound] = given === undefined ? undefined : parseTime(given);
    if (given !== undefined && bounds[bound] === undefined) {
      throw invalid(`/${member}`, `is not a time; write a number and a unit, such as "10s"`);
    }
  }
  for (const [bound, [least, most]] of Object.entries(CHECK_BOUNDS)) {
    const value = bounds[bound];
    if (value === undefined) delete bounds[bound];
    else if (
      !Number.isSafeInteger(value) ||
      (value as number) < least ||
      (value as number) > most
    ) {
      throw invalid(
        `/${places[bound] ?? bound}`,
        `is not a whole number ${bound.endsWith("Ms") ? "of milliseconds " : ""}from ${least} to ${most}`,
      );
    }
  }
  return bounds;
}

function textAt(given: unknown, at: string): string | undefined {
  if (given === undefined || (typeof given === "string" && given !== "")) return given;
  throw invalid(at, "is not a text, or is empty");
}

function listAt<One>(
  given: unknown,
  at: string,
  one: (given: unknown, at: string) => One,
): readonly One[] | undefined {
  if (given === undefined) return undefined;
  if (!Array.isArray(given)) throw invalid(at, "is not a list");
  return Array.from(given, (each, i) => one(each, `${at}/${i}`));
}

/** The object, which may have these members; any where they are not given. */
function membersAt(given: unknown, at: string, known?: readonly string[]): Members {
  if (!isJsonObject(given)) throw invalid(at, "is not an object");
  for (const key of Object.keys(given)) {
    if (known === undefined || known.includes(key)) continue;
    throw invalid(
      at + formatPointer([key]),
      `is not known; there are ${known.map((name) => quoteForMessage(name)).join(", ")}`,
    );
  }
  return given;
}

/** Does something, and says where it is wrong if it is. */
function atPlace<Output>(at: string, work: () => Output): Output {
  try {
    return work();
  } catch (error) {
    if (!isAgstateError(error)) throw error;
    throw invalid(at, `cannot be used: ${error.message}`);
  }
}

function invalid(at: string, problem: string): AgstateError {
  const place = at === "" ? "the whole" : quoteForMessage(at);
  return new AgstateError("INVALID_VALUE", `${place} ${problem}`, { at, problem });
}
