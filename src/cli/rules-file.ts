import { quoteForMessage } from "../core/names.js";
import { parseGovernance } from "../governance/file.js";
import type { GovernancePolicy } from "../governance/policy.js";
import { readInput } from "./input.js";

/** Reads rules for tools from a file, or from standard input for `-`. */
export async function readRules(file: string): Promise<GovernancePolicy> {
  const what = file === "-" ? "standard input" : `rules file ${quoteForMessage(file)}`;
  return parseGovernance(await readInput(file), what);
}
