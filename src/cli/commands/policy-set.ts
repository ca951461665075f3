import { parsePointer } from "../../core/json-pointer.js";
import { quoteForMessage } from "../../core/names.js";
import { checkStrategy } from "../../merge/policy.js";
import { shortId } from "../render/commit.js";
import { newHeadLine, paintBranch } from "../render/merge.js";
import type { Session } from "../session.js";

export interface PolicyOptions {
  readonly branch?: string;
  readonly message?: string;
  readonly author?: string;
}

/** `agstate policy set PATH STRATEGY`. */
export async function run(
  session: Session,
  args: readonly string[],
  options: PolicyOptions,
): Promise<undefined> {
  const { out } = session;
  const [path, given] = args as [string, string];
  parsePointer(path);
  const strategy = checkStrategy(given);
  const branch = await (await session.workflow()).branch(options.branch ?? "canonical");
  const before = branch.head;
  const policies = await branch.policies();
  const written = !Object.hasOwn(policies, path) || policies[path] !== strategy;
  const commit = written
    ? await branch.setPolicies(
        { [path]: strategy },
        {
          message:
            options.message ?? `Set the merge policy of ${quoteForMessage(path)} to ${strategy}`,
          ...(options.author === undefined ? {} : { author: options.author }),
        },
      )
    : before;
  if (out.json) {
    const policies = await branch.policies();
    return void (await out.value({ branch: branch.name, commit: commit.id, written, policies }));
  }
  if (written) return void (await out.line(newHeadLine(out.paint, branch.name, commit)));
  const name = paintBranch(out.paint, branch.name);
  await out.line(`Nothing changed; ${name} stays at ${out.paint.id(shortId(before.id))}.`);
}
