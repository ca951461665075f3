import { dateOf } from "../../core/http-version.js";
import type { Egress } from "../egress.js";
import { oneLine } from "../one-line.js";
import type { Checker, Compared, Observation } from "../types.js";
import { DEFAULT_SKEW_MS } from "../verdict.js";
import { unknown } from "./answers.js";
import { type Fields, fieldsOf, quoted, type RestCredentials, restApi } from "./rest.js";

export interface JiraCheckerOptions extends RestCredentials {
  readonly egress: Egress;
  /** The site, or the URL below which it has its `/rest`. */
  readonly base: string;
  /** `3`, the default, is the API of Jira Cloud; Data Center has `2`, and Cloud has it too. */
  readonly api?: "2" | "3";
}

const KEY = /^[A-Z][A-Z0-9_]{1,254}-[0-9]{1,19}$/;
const TOKEN = /^updated:(?<at>.*)$/;
const UPDATED =
  /^(?<local>\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?<fraction>\.\d{1,3})?(?<zone>Z|[+-]\d{2}:?\d{2})$/;

/**
 * Knows issues of Jira by their key: their version is when they were last updated, as Jira writes it,
 * `updated:2024-05-02T10:11:12.123+0000`.
 *
 * @throws AgstateError `INVALID_ARGUMENT` for a base or credentials that cannot be used
 */
export function jiraChecker({ egress, api = "3", ...where }: JiraCheckerOptions): Checker {
  const ask = restApi(egress, "jira", where);
  return {
    async observe({ id, version }, context) {
      if (!KEY.test(id)) return unknown("its id is none of an issue, such as ABC-12");
      const path = `/rest/api/${api}/issue/${id}?fields=updated,status,summary`;
      return await ask(
        {
          path,
          read: (issue, { headers }) => {
            const { now, skewMs = DEFAULT_SKEW_MS } = context;
            const latest = dateOf(headers, now()) + skewMs;
            return observed(issue, { id, version }, latest);
          },
        },
        context,
      );
    },
    compare: compareUpdates,
  };
}

/** @param latest in milliseconds since the Unix epoch; what is later lies in the future */
function observed(
  issue: Fields,
  asked: { readonly id: string; readonly version: string | null },
  latest: number,
): Observation {
  const { key } = issue;
  const fields = fieldsOf(issue.fields) ?? {};
  const { updated } = fields;
  if (typeof key !== "string" || !KEY.test(key)) return unknown("answered without a key");
  const at = typeof updated === "string" ? instantOf(updated) : null;
  if (at === null) return unknown("answered without the time of its last update");
  if (at > latest) return unknown("its last update lies in the future");
  const then = instantOfToken(asked.version ?? "");
  if (then !== null && then > latest) return unknown("the update on record lies in the future");
  const status = fieldsOf(fields.status)?.name;
  const state = typeof status === "string" ? `, ${status}` : "";
  // An issue that moved to another project still answers to its old key.
  const moved = key === asked.id ? "" : `, moved to ${key}`;
  const title = quoted(fields.summary);
  const shown = oneLine(`${asked.id}${moved}${state}, updated ${updated}${title && `:${title}`}`);
  return { kind: "version", version: `updated:${updated}`, shown };
}

/** Jira writes times in the zone of whoever asks, so that texts may differ where the instant is the same. */
function compareUpdates(then: string, found: string): Compared {
  const before = instantOfToken(then);
  const after = instantOfToken(found);
  if (before === null) return { unknown: "the version on record is no time of an update" };
  if (after === null) return { unknown: "what was found is no time of an update" };
  return before === after ? "same" : "changed";
}

function instantOfToken(token: string): number | null {
  return instantOf(TOKEN.exec(token)?.groups?.at ?? "");
}

function instantOf(text: string): number | null {
  const { local = "", fraction = "", zone = "" } = UPDATED.exec(text)?.groups ?? {};
  const utc = Date.parse(`${local}Z`);
  // What JavaScript rolls over, such as the 31st of a shorter month, is no date.
  if (Number.isNaN(utc) || !new Date(utc).toISOString().startsWith(local)) return null;
  const at = Date.parse(`${local}${fraction}${zone.replace(/^(...):?(..)$/, "$1:$2")}`);
  return Number.isNaN(at) ? null : at;
}
