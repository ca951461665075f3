import { dirname, resolve } from "node:path";
import { quoteForMessage } from "../core/names.js";
import type { Environment } from "../core/variables.js";
import { locatedIn, readJsonFile } from "../objects/json-file.js";
import type { CheckBounds } from "./check.js";
import { confluenceChecker } from "./checkers/confluence.js";
import { fileChecker } from "./checkers/file.js";
import { gitChecker } from "./checkers/git.js";
import { githubPrChecker } from "./checkers/github-pr.js";
import { httpChecker } from "./checkers/http.js";
import { jiraChecker } from "./checkers/jira.js";
import { type CheckerConfig, checkCheckers } from "./config-check.js";
import { createEgress } from "./egress.js";
import type { Checker } from "./types.js";

/** The largest file of checkers, in bytes. */
const CHECKERS_FILE_MAX_BYTES = 1024 * 1024;

/**
 * Makes the checkers that a configuration has: `http`, `git` and `github-pr` always, `file` where a root is named, `confluence` and
 * `jira` where their base is. All ask through one client.
 *
 * @throws AgstateError `INVALID_VALUE` with the place as a JSON Pointer in `details.at`; no secret is in it
 */
export function createCheckers(config: CheckerConfig): Readonly<Record<string, Checker>> {
  const {
    root,
    allow,
    credentials = [],
    confluence,
    jira,
    github,
    concurrency,
    searchPath,
  } = checkCheckers(config, {});
  const egress = createEgress({
    ...(allow && { allow }),
    ...(concurrency && { concurrency }),
  });
  const local = root === undefined ? undefined : { root, searchPath };
  return {
    http: httpChecker({ egress, credentials }),
    git: gitChecker({ local, remote: { egress, credentials } }),
    "github-pr": githubPrChecker({ egress, ...github }),
    ...(root !== undefined && { file: fileChecker({ root }) }),
    ...(confluence && { confluence: confluenceChecker({ egress, ...confluence }) }),
    ...(jira && { jira: jiraChecker({ egress, ...jira }) }),
  };
}

/** The bounds of a check that a configuration has, for `checkResources`. */
export function checkBounds(config: CheckerConfig): CheckBounds {
  const { timeoutMs, totalMs, retries, concurrency, skewMs } = config;
  return {
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(totalMs !== undefined && { totalMs }),
    ...(retries !== undefined && { retries }),
    ...(concurrency !== undefined && { concurrency }),
    ...(skewMs !== undefined && { skewMs }),
  };
}

/**
 * Reads a configuration of checkers from a JSON file. Secrets may be variables such as `${CONFLUENCE_TOKEN}`; the root counts from
 * the folder of the file. `git` is looked for in the folders of the environment's `PATH`.
 *
 * @throws AgstateError `INVALID_ARGUMENT` when the file cannot be read; `INVALID_VALUE`, `LIMIT_EXCEEDED`. Each names the file, and
 *   where it can, line and column; none a value of a variable.
 */
export async function readCheckersFile(
  path: string,
  environment: Environment,
): Promise<CheckerConfig> {
  const what = `checkers file ${quoteForMessage(path)}`;
  const { text, value } = await readJsonFile(path, {
    what,
    remedy: `name a JSON file such as {"root":"."}`,
    maxBytes: CHECKERS_FILE_MAX_BYTES,
  });
  try {
    const { root, ...config } = checkCheckers(value, { environment });
    const searchPath = environment.PATH;
    return {
      ...config,
      ...(root !== undefined && { root: resolve(dirname(resolve(path)), root) }),
      ...(searchPath && { searchPath }),
    };
  } catch (error) {
    throw locatedIn(error, what, text);
  }
}
