import { AgstateError } from "../core/errors.js";
import { checkIdentity, hasLoneSurrogate, NAME_MAX_BYTES, quoteForMessage } from "../core/names.js";

/** The agreed state of a workflow. */
export const CANONICAL_REF = "refs/heads/canonical";

/** Where records are kept of what no other ref tells. */
export const AUDIT = "refs/audit/";

/** Where a workflow's declarations are kept. */
export const GENESIS_REF = "refs/audit/workflow";
/** Where events that move no other ref are recorded, each as a commit on top of the one before. */
export const EVENTS_REF = "refs/audit/events";

/** Where holds are: they keep what they reach, and nothing but placing and releasing moves them. */
export const HOLDS = "refs/holds/";

const AGENTS = "refs/heads/agents/";
const TAGS = "refs/tags/";

/** Whether a ref leads to states of the workflow; others lead to records of agstate's own. */
export function holdsStates(ref: string): boolean {
  return /^refs\/(heads|tags|holds|merges)\//.test(ref);
}

/**
 * Checks an agent's, branch's or tag's name: one component of 1 to 200 bytes
 * that `git check-ref-format` accepts, and, so that a name is never taken for
 * something else, not `HEAD` or `@`, not 4 to 64 hex digits, not beginning
 * with `-`. Case counts.
 *
 * @throws AgstateError `INVALID_NAME`
 */
export function checkRefComponent(what: string, name: string): string {
  const problem = componentProblem(name);
  if (problem !== null) {
    const shown = typeof name === "string" ? quoteForMessage(name) : String(name);
    throw new AgstateError("INVALID_NAME", `${what} ${shown} ${problem}`, {
      field: what,
      name: String(name),
    });
  }
  return name;
}

function componentProblem(name: unknown): string | null {
  if (typeof name !== "string") return "is not a string";
  if (name === "") return "is empty";
  if (hasLoneSurrogate(name)) return "holds a lone surrogate, which UTF-8 cannot hold";
  if (Buffer.byteLength(name) > NAME_MAX_BYTES) {
    return `is ${Buffer.byteLength(name)} bytes long; at most ${NAME_MAX_BYTES} are allowed`;
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: Git refuses these bytes in ref names
  const bad = /[\u0000-\u0020\u007f~^:?*[\\]/.exec(name);
  if (bad !== null) {
    return `holds ${quoteForMessage(bad[0])}; Git allows no space, no control character and none of ~ ^ : ? * [ \\ in a ref name`;
  }
  if (name.includes("/")) return 'holds "/"; it is a single component, such as try-1';
  if (name.includes("..")) return 'holds "..", which Git does not allow in a ref name';
  if (name.includes("@{")) return 'holds "@{", which Git does not allow in a ref name';
  if (name.startsWith(".")) return 'begins with ".", which Git does not allow';
  if (name.startsWith("-")) return 'begins with "-", which would be taken for an option';
  if (name.endsWith(".")) return 'ends in ".", which Git does not allow';
  if (name.endsWith(".lock")) return 'ends in ".lock", which Git does not allow';
  if (name === "HEAD" || name === "@") return "has a meaning of its own in Git";
  if (/^[0-9a-f]{4,64}$/i.test(name)) {
    return "could be taken for a shortened commit id (4 to 64 hex digits)";
  }
  return null;
}

/** The ref of an agent's branch. */
export function agentRef(agent: string, branch: string): string {
  checkIdentity("agent", agent);
  return `${AGENTS}${checkRefComponent("agent", agent)}/${checkRefComponent("branch", branch)}`;
}

export function tagRef(name: string): string {
  if (name === "canonical") {
    throw new AgstateError(
      "INVALID_NAME",
      'tag "canonical" would stand in for the branch of that name; choose another name',
      { field: "tag", name },
    );
  }
  return TAGS + checkRefComponent("tag", name);
}

/** The agent and branch of an agent's ref; null for any other ref. */
export function parseAgentRef(ref: string): { agent: string; branch: string } | null {
  if (!ref.startsWith(AGENTS)) return null;
  const [agent, branch, ...more] = ref.slice(AGENTS.length).split("/");
  if (agent === undefined || branch === undefined || more.length > 0) return null;
  return { agent, branch };
}

/**
 * The ref that a branch's name means: `canonical`, `agents/booker/try-1`, its
 * short form `booker/try-1`, or the full ref.
 *
 * @throws AgstateError `INVALID_NAME`
 */
export function branchRef(name: string): string {
  if (name === "canonical" || name === CANONICAL_REF) return CANONICAL_REF;
  if (/^refs\/(?!heads\/)[^/]+\//.test(name)) {
    const remedy = name.startsWith(HOLDS)
      ? "a hold is released, by agstate hold release"
      : "branches are canonical and those below refs/heads/agents/";
    throw new AgstateError(
      "INVALID_NAME",
      `${quoteForMessage(name)} is the name of a ref that is no branch; ${remedy}`,
      { field: "branch", name },
    );
  }
  const rest = name.replace(/^refs\/heads\//, "").replace(/^agents\//, "");
  const slash = rest.indexOf("/");
  if (slash < 0) {
    throw new AgstateError(
      "INVALID_NAME",
      `branch ${quoteForMessage(name)} is neither canonical nor AGENT/BRANCH; name it for example booker/try-1`,
      { field: "branch", name },
    );
  }
  return agentRef(rest.slice(0, slash), rest.slice(slash + 1));
}

/** The refs that a short name may mean, in the order in which they are tried. */
export function refCandidates(name: string): string[] {
  if (name.startsWith("refs/")) return [name];
  return [`refs/${name}`, TAGS + name, `refs/heads/${name}`, AGENTS + name];
}

/** A ref's name as people see it: `canonical`, `agents/a/b`, `tags/v1`. */
export function shortRefName(ref: string): string {
  return ref.replace(/^refs\/(?:heads\/)?/, "");
}
