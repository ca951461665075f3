import { AgstateError } from "../core/errors.js";
import { isJsonObject } from "../core/json.js";
import { formatPointer, parsePointer } from "../core/json-pointer.js";
import { isOneLine, quoteForMessage } from "../core/names.js";
import { STEP_ACTIONS, type StepAction } from "../objects/commit.js";
import { toolMatcher } from "./pattern.js";

const DECISIONS = ["allow", "deny", "approve"] as const;

/** What a rule says of a tool: it may run, may not, or a person decides. */
export type GovernanceDecision = (typeof DECISIONS)[number];

export interface GovernanceRule {
  /** A tool's name, in which `*` stands for any characters. */
  readonly tool: string;
  readonly decision: GovernanceDecision;
  /** The tool's class, which counts over what the code says. Left out, the code says it; `execute` when it does not. */
  readonly action?: StepAction;
  /** With `approve`: how long a request, and an approval that is not used, count. */
  readonly expiresAfterMs?: number;
  /** With `approve`: JSON Pointers into the state; an approval lapses when what stands there changes. */
  readonly paths?: readonly string[];
  /** Why, for whoever decides or is refused. */
  readonly reason?: string;
}

/** Rules for tools. The first that matches a tool's name counts. */
export interface GovernancePolicy {
  readonly rules: readonly GovernanceRule[];
  /**
   * What holds for a tool that no rule names, which is taken to be of class `execute`. Default
   * `approve`: nothing that nobody thought of happens without a person.
   */
  readonly default?: GovernanceDecision;
}

const REASON_MAX_BYTES = 500;
const RULES_MAX = 10_000;

/**
 * Reads a policy, and refuses what is not known or can never count.
 *
 * @throws AgstateError `INVALID_POLICY` with the place as a JSON Pointer in `details.at`, and what is wrong
 *   there in `details.problem`
 */
export function checkGovernance(given: unknown): GovernancePolicy {
  const policy = objectAt(given, "", ["rules", "default"]);
  const { rules } = policy;
  if (!Array.isArray(rules)) throw invalid("/rules", "is not a list of rules");
  if (rules.length > RULES_MAX) {
    throw invalid("/rules", `has ${rules.length} rules; at most ${RULES_MAX} are allowed`);
  }
  const names = new Map<string, number>();
  const patterns: { readonly matches: (name: string) => boolean; readonly i: number }[] = [];
  const checked = rules.map((rule: unknown, i) => {
    const one = ruleAt(rule, `/rules/${i}`);
    // A pattern that matches another as it is written matches all that the other does.
    const before = names.get(one.tool) ?? patterns.find(({ matches }) => matches(one.tool))?.i;
    if (before !== undefined) {
      throw invalid(
        `/rules/${i}/tool`,
        `can never count: the first rule that matches does, and /rules/${before} matches all that it matches; put it before that one, or remove it`,
      );
    }
    names.set(one.tool, i);
    if (one.tool.includes("*")) patterns.push({ matches: toolMatcher(one.tool), i });
    return one;
  });
  return {
    rules: checked,
    ...(policy.default === undefined
      ? {}
      : { default: oneOf(policy.default, "/default", DECISIONS) }),
  };
}

function ruleAt(given: unknown, at: string): GovernanceRule {
  const rule = objectAt(given, at, [
    "tool",
    "decision",
    "action",
    "expiresAfterMs",
    "paths",
    "reason",
  ]);
  const { tool, expiresAfterMs, paths, reason } = rule;
  if (typeof tool !== "string" || tool === "") {
    throw invalid(`${at}/tool`, "is not a tool's name or a pattern such as book*");
  }
  const decision = oneOf(rule.decision, `${at}/decision`, DECISIONS);
  for (const name of ["expiresAfterMs", "paths"] as const) {
    if (rule[name] !== undefined && decision !== "approve") {
      throw invalid(
        `${at}/${name}`,
        `only counts with the decision approve, and this is ${decision}`,
      );
    }
  }
  if (
    expiresAfterMs !== undefined &&
    !(Number.isSafeInteger(expiresAfterMs) && (expiresAfterMs as number) > 0)
  ) {
    throw invalid(`${at}/expiresAfterMs`, "is not a whole number of milliseconds above 0");
  }
  if (
    reason !== undefined &&
    !(
      typeof reason === "string" &&
      isOneLine(reason) &&
      Buffer.byteLength(reason) <= REASON_MAX_BYTES
    )
  ) {
    throw invalid(`${at}/reason`, `is not one line of at most ${REASON_MAX_BYTES} bytes`);
  }
  return {
    tool,
    decision,
    ...(rule.action === undefined
      ? {}
      : { action: oneOf(rule.action, `${at}/action`, STEP_ACTIONS) }),
    ...(expiresAfterMs === undefined ? {} : { expiresAfterMs: expiresAfterMs as number }),
    ...(paths === undefined ? {} : { paths: pathsAt(paths, `${at}/paths`) }),
    ...(reason === undefined ? {} : { reason: reason as string }),
  };
}

function pathsAt(given: unknown, at: string): string[] {
  if (!Array.isArray(given)) throw invalid(at, "is not a list of JSON Pointers");
  const paths = given.map((path: unknown, i) => {
    try {
      return formatPointer(parsePointer(path as string));
    } catch (error) {
      throw invalid(`${at}/${i}`, `is no JSON Pointer: ${(error as Error).message}`);
    }
  });
  return [...new Set(paths)];
}

function objectAt(
  given: unknown,
  at: string,
  known: readonly string[],
): { readonly [key: string]: unknown } {
  if (!isJsonObject(given)) throw invalid(at, `is not an object with ${known.join(", ")}`);
  for (const key of Object.keys(given)) {
    if (!known.includes(key)) {
      throw invalid(`${at}${formatPointer([key])}`, `is not known; there are ${known.join(", ")}`);
    }
  }
  return given;
}

function oneOf<Known extends string>(given: unknown, at: string, known: readonly Known[]): Known {
  if (known.includes(given as Known)) return given as Known;
  const shown = given === undefined ? "is missing" : `is ${quoteForMessage(String(given))}`;
  throw invalid(at, `${shown}; there are ${known.join(", ")}`);
}

function invalid(at: string, problem: string): AgstateError {
  return new AgstateError(
    "INVALID_POLICY",
    `the rules for tools cannot be used: ${placeInWords(at)} ${problem}`,
    { at, problem },
  );
}

/** A place in a policy, as messages name it. */
export function placeInWords(at: string): string {
  return at === "" ? "the policy" : quoteForMessage(at);
}

/** What holds for one tool. */
export interface Verdict extends Omit<GovernanceRule, "tool" | "paths"> {
  /** The pattern that matched; null when no rule did. */
  readonly rule: string | null;
  readonly action?: StepAction;
  readonly paths: readonly string[];
}

/** A policy in force. */
export class Governance {
  readonly policy: GovernancePolicy;
  private readonly matchers: readonly ((name: string) => boolean)[];

  /** @throws AgstateError `INVALID_POLICY` */
  constructor(given: unknown) {
    this.policy = checkGovernance(given);
    this.matchers = this.policy.rules.map(({ tool }) => toolMatcher(tool));
  }

  verdictOn(name: string): Verdict {
    const { rules, default: otherwise = "approve" } = this.policy;
    const found = rules[this.matchers.findIndex((matches) => matches(name))];
    if (found === undefined) {
      return { rule: null, decision: otherwise, action: "execute", paths: [] };
    }
    const { tool, paths = [], ...rest } = found;
    return { ...rest, rule: tool, paths };
  }
}
