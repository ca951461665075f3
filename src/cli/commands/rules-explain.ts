import { Governance, type GovernanceDecision, type Verdict } from "../../governance/policy.js";
import { columns } from "../render/columns.js";
import { cutTo, WIDTH } from "../render/cut.js";
import { escapeLine } from "../render/escape.js";
import type { Paint } from "../render/paint.js";
import { plural } from "../render/sizes.js";
import { wrap } from "../render/wrap.js";
import { readRules } from "../rules-file.js";
import type { Session } from "../session.js";

const LABEL_WIDTH = 10;
const ROOM = WIDTH - LABEL_WIDTH;

/** `agstate rules explain FILE TOOL...`: which rule counts for each tool, and what it says. */
export async function run(session: Session, args: readonly string[]): Promise<undefined> {
  const { out } = session;
  const [file, ...tools] = args as [string, ...string[]];
  const governance = new Governance(await readRules(file));
  for (const [i, tool] of tools.entries()) {
    const verdict = governance.verdictOn(tool);
    const found = governance.policy.rules.findIndex(({ tool }) => tool === verdict.rule);
    if (out.json) {
      const { rule: pattern, decision, action, paths, expiresAfterMs, reason } = verdict;
      await out.value({
        tool,
        rule: pattern === null ? null : { at: `/rules/${found}`, tool: pattern },
        decision,
        action: action ?? null,
        paths,
        expiresAfterMs: expiresAfterMs ?? null,
        reason: reason ?? null,
      });
      continue;
    }
    if (i > 0) await out.line();
    await out.line(out.paint.bold(cutTo(escapeLine(tool), WIDTH)));
    const rows = factsOf(verdict, found).flatMap(([label, text]) =>
      wrap(text, ROOM).map((line, n) => [
        out.paint.dim((n === 0 ? label : "").padEnd(LABEL_WIDTH - 2)),
        label === "decision" ? paintDecision(out.paint, verdict.decision, line) : line,
      ]),
    );
    for (const line of columns(rows)) await out.line(line);
  }
}

function factsOf(verdict: Verdict, at: number): [label: string, text: string][] {
  const { rule, decision, action, paths, expiresAfterMs, reason } = verdict;
  const facts: [string, string][] = [
    [
      "rule",
      rule === null ? "none matches" : `${escapeLine(rule)} (number ${at + 1}, /rules/${at})`,
    ],
    ["decision", DECISION_WORDS[decision]],
    ["class", classWords(action, rule === null)],
  ];
  if (decision === "approve") {
    const places = paths.map((path) => (path === "" ? "(the whole state)" : escapeLine(path)));
    const bound =
      places.length === 0
        ? "the step and its input"
        : `the step, its input and the state at ${places.join(", ")}`;
    facts.push(["bound to", bound]);
    facts.push([
      "expires",
      expiresAfterMs === undefined ? "never" : `after ${exactly(expiresAfterMs)}`,
    ]);
  }
  if (reason !== undefined) facts.push(["reason", escapeLine(reason)]);
  return facts;
}

const DECISION_WORDS: Readonly<Record<GovernanceDecision, string>> = {
  allow: "allow: it runs",
  deny: "deny: it does not run, and the refusal is recorded",
  approve: "approve: it waits for a person, who lets it run once",
};

function classWords(action: Verdict["action"], unnamed: boolean): string {
  if (action === undefined) return "what the code says, else execute";
  return `${action}, whatever the code says${unnamed ? "; the strictest" : ""}`;
}

function paintDecision(paint: Paint, decision: GovernanceDecision, line: string): string {
  if (decision === "allow") return paint.good(line);
  return decision === "deny" ? paint.bad(line) : paint.path(line);
}

const UNITS = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1000],
] as const;

/** A time in the greatest unit of which it is a whole number. */
function exactly(ms: number): string {
  const unit = UNITS.find(([, size]) => ms % size === 0);
  return unit === undefined ? plural(ms, "millisecond") : plural(ms / unit[1], unit[0]);
}
