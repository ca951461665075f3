import { dateOf } from "../../core/http-version.js";
import type { Egress, EgressAnswer } from "../egress.js";
import { oneLine } from "../one-line.js";
import type { Checker, Observation } from "../types.js";
import { boundedWait, retryAfter, unknown } from "./answers.js";
import { type Fields, fieldsOf, quoted, restApi } from "./rest.js";

export interface GithubPrCheckerOptions {
  readonly egress: Egress;
  /** Default `https://api.github.com`; an Enterprise Server has its API at `https://HOST/api/v3`. */
  readonly base?: string;
  readonly token?: string;
}

const GITHUB = "https://api.github.com";
const HEADERS = { accept: "application/vnd.github+json", "x-github-api-version": "2022-11-28" };

const ID =
  /^(?<owner>[A-Za-z0-9][A-Za-z0-9_-]{0,99})\/(?<repository>(?!\.{1,2}#)[A-Za-z0-9._-]{1,100})#(?<number>[1-9][0-9]{0,9})$/;
const TOKEN = /^head:[0-9a-f]{40,64} state:(?:open|closed|merged) base:\S+$/;
const OBJECT_ID = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;
/** A branch's name, as far as Git's rules keep it apart from the rest of a token. */
const BRANCH = /^[^\s\p{Cc}~^:?*[\\]{1,1000}$/u;

/** How long to wait when GitHub says that it was asked too often, and not for how long, in milliseconds. */
const LIMITED_WAIT_MS = 60_000;

/**
 * Knows pull requests of GitHub as `owner/repository#12`: their version is the commit at their head, whether they are open,
 * closed or merged, and the branch that they go to.
 *
 * @throws AgstateError `INVALID_ARGUMENT` for a base or a token that cannot be used
 */
export function githubPrChecker({
  egress,
  base = GITHUB,
  ...who
}: GithubPrCheckerOptions): Checker {
  const ask = restApi(egress, "github", { base, ...who }, HEADERS);
  return {
    async observe({ id }, context) {
      const { owner, repository, number } = ID.exec(id)?.groups ?? {};
      if (number === undefined) {
        return unknown("its id is none of a pull request, such as owner/repository#12");
      }
      return await ask(
        {
          path: `/repos/${owner}/${repository}/pulls/${number}`,
          read: (pull) => observed(pull, Number(number)),
          early: (answer) => limited(answer, context.now()),
        },
        context,
      );
    },
    compare(then, found) {
      if (!TOKEN.test(then)) return { unknown: "the version on record is none of a pull request" };
      return then === found ? "same" : "changed";
    },
  };
}

/** GitHub answers with 403 as well as with 429 to whoever asks too often; null when it is something else. */
function limited({ status, headers }: EgressAnswer, now: number): Observation | null {
  if (status !== 403 && status !== 429) return null;
  const after = retryAfter(headers, now);
  const reset = headers.get("x-ratelimit-reset") ?? "";
  const isSpent = headers.get("x-ratelimit-remaining") === "0" && /^\d{1,12}$/.test(reset);
  if (status === 403 && after === null && !isSpent) return null;
  const untilReset = () => boundedWait(Number(reset) * 1000 - dateOf(headers, now));
  const waitMs = after ?? (isSpent ? untilReset() : LIMITED_WAIT_MS);
  return unknown(`answered with ${status}: asked too often`, { again: true, waitMs });
}

function observed(pull: Fields, number: number): Observation {
  const head = fieldsOf(pull.head)?.sha;
  const into = fieldsOf(pull.base)?.ref;
  if (pull.number !== number) {
    return unknown("answered with another pull request than was asked for");
  }
  if (typeof head !== "string" || !OBJECT_ID.test(head)) {
    return unknown("answered without the commit at its head");
  }
  if (typeof into !== "string" || !BRANCH.test(into)) {
    return unknown("answered without the branch that it goes to");
  }
  if (pull.state !== "open" && pull.state !== "closed") {
    return unknown("answered without a state that is known");
  }
  const isMerged = pull.merged === true || typeof pull.merged_at === "string";
  if (isMerged && pull.state === "open") return unknown("answered that it is open and merged");
  const state = isMerged ? "merged" : pull.state;
  const at = head.slice(0, 12);
  const shown = oneLine(`#${number}${quoted(pull.title)}, ${state}, at ${at}, into ${into}`);
  return { kind: "version", version: `head:${head} state:${state} base:${into}`, shown };
}
