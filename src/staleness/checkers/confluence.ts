import { parseBase } from "../credentials.js";
import type { Egress } from "../egress.js";
import { oneLine } from "../one-line.js";
import type { Checker, Observation } from "../types.js";
import { unknown } from "./answers.js";
import { type Fields, fieldsOf, quoted, type RestCredentials, restApi } from "./rest.js";

export interface ConfluenceCheckerOptions extends RestCredentials {
  readonly egress: Egress;
  /** The site of Confluence Cloud, or the URL below which a Data Center has its `/rest`. */
  readonly base: string;
  /** `v2`, the default, is the API of Confluence Cloud, `v1` that of Data Center. */
  readonly api?: "v1" | "v2";
}

const PAGE_ID = /^[0-9]{1,19}$/;
const TOKEN = /^version:[1-9][0-9]*$/;

/**
 * Knows pages of Confluence by their id, which is a number: their version is the page's own, `version:7`.
 *
 * @throws AgstateError `INVALID_ARGUMENT` for a base or credentials that cannot be used
 */
export function confluenceChecker({
  egress,
  base,
  api = "v2",
  ...who
}: ConfluenceCheckerOptions): Checker {
  const { href } = parseBase(base, "the base URL of confluence");
  // Cloud has all of it below /wiki, and so has what people copy from their browser.
  const site = api === "v2" ? href.replace(/\/wiki$/, "") : href;
  const ask = restApi(egress, "confluence", { base: site, ...who });
  return {
    async observe({ id }, context) {
      if (!PAGE_ID.test(id)) return unknown("its id is none of a page: it is not a number");
      const path =
        api === "v2" ? `/wiki/api/v2/pages/${id}` : `/rest/api/content/${id}?expand=version`;
      return await ask({ path, read: (page) => observed(page, id) }, context);
    },
    compare(then, found) {
      if (!TOKEN.test(then)) return { unknown: "the version on record is none of a page" };
      return then === found ? "same" : "changed";
    },
  };
}

function observed(page: Fields, id: string): Observation {
  if (String(page.id) !== id) return unknown("answered with another page than was asked for");
  if (page.status === "trashed" || page.status === "deleted") {
    return { kind: "gone", why: `the page is ${page.status}` };
  }
  if (page.status !== "current" && page.status !== "archived") {
    return unknown("answered without a status that is known");
  }
  const number = fieldsOf(page.version)?.number;
  if (typeof number !== "number" || !Number.isSafeInteger(number) || number < 1) {
    return unknown("answered without the number of its version");
  }
  const archived = page.status === "archived" ? ", archived" : "";
  const shown = oneLine(`version ${number} of${quoted(page.title) || " the page"}${archived}`);
  return { kind: "version", version: `version:${number}`, shown };
}
