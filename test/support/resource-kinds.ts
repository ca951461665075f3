import { confluenceChecker } from "../../src/staleness/checkers/confluence.js";
import { githubPrChecker } from "../../src/staleness/checkers/github-pr.js";
import { httpChecker } from "../../src/staleness/checkers/http.js";
import { jiraChecker } from "../../src/staleness/checkers/jira.js";
import type { Egress } from "../../src/staleness/egress.js";
import type { Checkers } from "../../src/staleness/types.js";
import { type Answer, json } from "./resource-server.js";

/** One type of resource that is asked for over HTTP, as its service speaks. */
export interface ResourceKind {
  readonly type: "http" | "confluence" | "jira" | "github-pr";
  /** The id of the n-th resource. */
  id(n: number, url: string): string;
  /** Where its checker asks for that. */
  path(n: number): string;
  /** What is on record of all of them. */
  readonly version: string;
  /** The answer of one that is as it was. */
  same(n: number): Exclude<Answer, string>;
  /** The answer of one that is not. */
  changed(n: number): Exclude<Answer, string>;
}

const HEAD = "6dcb09b5b57875f334f61aebed695e2e4193db5e";

export function page(id: string, more: object = {}): Exclude<Answer, string> {
  const version = { number: 7, createdAt: "2024-05-02T10:11:12.123Z", message: "" };
  return json({ id, status: "current", title: "Refund rules", spaceId: "9", version, ...more });
}

export function issue(key: string, more: object = {}): Exclude<Answer, string> {
  const fields = {
    updated: "2024-05-02T10:11:12.123+0000",
    status: { name: "In Progress" },
    summary: "Refunds take too long",
    ...more,
  };
  return json({ id: "10002", key, fields });
}

export function pull(number: number, more: object = {}): Exclude<Answer, string> {
  return json({
    number,
    state: "open",
    title: "Refund sooner",
    merged: false,
    merged_at: null,
    updated_at: "2024-05-02T10:11:12Z",
    head: { ref: "sooner", sha: HEAD },
    base: { ref: "main", sha: HEAD },
    ...more,
  });
}

export const RESOURCE_KINDS: readonly ResourceKind[] = [
  {
    type: "http",
    id: (n, url) => `${url}/files/${n}`,
    path: (n) => `/files/${n}`,
    version: 'etag:"v1"',
    same: () => ({ status: 200, headers: { etag: '"v1"' }, body: "content" }),
    changed: () => ({ status: 200, headers: { etag: '"v2"' }, body: "content" }),
  },
  {
    type: "confluence",
    id: (n) => String(1000 + n),
    path: (n) => `/wiki/api/v2/pages/${1000 + n}`,
    version: "version:7",
    same: (n) => page(String(1000 + n)),
    changed: (n) => page(String(1000 + n), { version: { number: 8 } }),
  },
  {
    type: "jira",
    id: (n) => `ABC-${n + 1}`,
    path: (n) => `/rest/api/3/issue/ABC-${n + 1}?fields=updated,status,summary`,
    version: "updated:2024-05-02T10:11:12.123+0000",
    same: (n) => issue(`ABC-${n + 1}`),
    changed: (n) => issue(`ABC-${n + 1}`, { updated: "2024-05-02T10:11:12.124+0000" }),
  },
  {
    type: "github-pr",
    id: (n) => `owner/repository#${n + 1}`,
    path: (n) => `/repos/owner/repository/pulls/${n + 1}`,
    version: `head:${HEAD} state:open base:main`,
    same: (n) => pull(n + 1),
    changed: (n) => pull(n + 1, { state: "closed", merged: true }),
  },
];

/** The four checkers, all of them for one server. */
export function resourceCheckers(egress: Egress, base: string): Checkers {
  return {
    http: httpChecker({ egress }),
    confluence: confluenceChecker({ egress, base }),
    jira: jiraChecker({ egress, base }),
    "github-pr": githubPrChecker({ egress, base }),
  };
}
