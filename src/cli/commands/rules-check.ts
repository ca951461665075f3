import { escapeLine } from "../render/escape.js";
import { plural } from "../render/sizes.js";
import { readRules } from "../rules-file.js";
import type { Session } from "../session.js";

/** `agstate rules check FILE`: whether a file of rules can be used; ends with 2, and says where, when not. */
export async function run(session: Session, args: readonly string[]): Promise<undefined> {
  const { out } = session;
  const [file] = args as [string];
  const { rules, default: otherwise = "approve" } = await readRules(file);
  if (out.json) return void (await out.value({ file, rules: rules.length, default: otherwise }));
  const good = out.paint.good(`${plural(rules.length, "rule")} can be used`);
  const name = file === "-" ? "standard input" : escapeLine(file);
  await out.line(`${name}: ${good}; ${otherwise} for every other tool.`);
}
